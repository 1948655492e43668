// SPDX-License-Identifier: GPL-2.0

//! As much of the kernel's crate as reckoning with a device's limits takes.

#![no_std]

/// Pages: as most machines have them, or as `PAGE_SHIFT` said in the environment of the build.
pub mod page {
    /// As a power of two.
    pub const PAGE_SHIFT: usize = match option_env!("PAGE_SHIFT") {
        None => 12,
        Some(shift) => match usize::from_str_radix(shift, 10) {
            Ok(shift) => shift,
            Err(_) => panic!("PAGE_SHIFT is a number"),
        },
    };
    /// Bytes of a page.
    pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
}

/// What every file of the module may use.
pub mod prelude {
    /// Why something failed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Error {
        /// It makes no sense.
        Invalid,
    }

    pub use Error::Invalid as EINVAL;

    /// What may fail.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;
}
