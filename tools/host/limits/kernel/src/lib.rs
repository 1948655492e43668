// SPDX-License-Identifier: GPL-2.0

//! A stand-in for the kernel crate: the items that the `limits.rs` files of the module use.

#![no_std]

/// The page size: 4 KiB, or as `PAGE_SHIFT` in the environment of the build says.
pub mod page {
    /// Binary logarithm of the page size.
    pub const PAGE_SHIFT: usize = match option_env!("PAGE_SHIFT") {
        None => 12,
        Some(shift) => match usize::from_str_radix(shift, 10) {
            Ok(shift) => shift,
            Err(_) => panic!("PAGE_SHIFT must be a number"),
        },
    };
    /// Bytes in a page.
    pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
}

/// The prelude.
pub mod prelude {
    /// Error codes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Error {
        /// `EINVAL`.
        Invalid,
    }

    pub use Error::Invalid as EINVAL;

    /// A result with the kernel's error type.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;
}
