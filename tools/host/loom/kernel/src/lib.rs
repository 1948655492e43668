// SPDX-License-Identifier: GPL-2.0

//! A stand-in for the kernel crate, and for `core`, over [loom](https://docs.rs/loom): the items
//! that the lock-free files of the module use.
//!
//! The crate that compiles those files names this one `kernel` and `core`. So
//! `core::cell::UnsafeCell` is one that loom watches; all else of `core` is `core`'s. Initializers
//! in place are those of [pinned-init](https://docs.rs/pinned-init), which is the kernel's
//! `pin-init`.

pub use ::core::*;

pub mod cell;
pub mod sync;
mod vec;

/// A value of zeroes.
pub fn zeroed<T: Default>() -> T {
    T::default()
}

/// Allocation.
pub mod alloc {
    /// How to allocate.
    #[derive(Clone, Copy)]
    pub struct Flags;

    /// There is no memory.
    #[derive(Debug)]
    pub struct AllocError;
}

/// The prelude.
pub mod prelude {
    use crate::alloc::AllocError;
    use crate::alloc::Flags;
    use crate::mem::MaybeUninit;
    use crate::ops::Deref;
    use crate::ops::DerefMut;

    pub use pinned_init::pin_data;
    pub use pinned_init::pin_init;
    pub use pinned_init::PinInit;

    pub use crate::ffi::c_int;
    pub use crate::vec::KVVec;
    pub use crate::vec::KVec;

    /// Error codes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Error {
        /// `EINVAL`.
        Invalid,
    }

    impl Error {
        /// The number.
        pub fn to_errno(self) -> c_int {
            -22
        }
    }

    impl From<AllocError> for Error {
        fn from(_: AllocError) -> Self {
            unreachable!("no allocation fails")
        }
    }

    /// `EINVAL`.
    pub const EINVAL: Error = Error::Invalid;

    /// The flags of allocations that must not sleep.
    pub const GFP_NOWAIT: Flags = Flags;

    /// A result with the kernel's error type.
    pub type Result<T = (), E = Error> = ::core::result::Result<T, E>;

    /// The flags of most allocations.
    pub const GFP_KERNEL: Flags = Flags;

    /// A box.
    pub struct KBox<T>(Box<T>);

    impl<T> KBox<T> {
        /// Allocates memory.
        ///
        /// # Errors
        ///
        /// None here.
        pub fn new_uninit(_: Flags) -> Result<KBox<MaybeUninit<T>>> {
            Ok(KBox(Box::new_uninit()))
        }

        /// Allocates memory for the value.
        ///
        /// # Errors
        ///
        /// None here.
        pub fn new(value: T, _: Flags) -> Result<Self> {
            Ok(Self(Box::new(value)))
        }

        /// Gives the memory up.
        pub fn leak<'a>(this: Self) -> &'a mut T {
            Box::leak(this.0)
        }

        /// Takes back what [`Self::leak`] gave up.
        ///
        /// # Safety
        ///
        /// `raw` comes from a box that was leaked, and is not used again.
        pub unsafe fn from_raw(raw: *mut T) -> Self {
            // SAFETY: By this function's contract.
            Self(unsafe { Box::from_raw(raw) })
        }

        /// Moves the content out.
        pub fn into_inner(this: Self) -> T {
            *this.0
        }
    }

    impl<T> KBox<MaybeUninit<T>> {
        /// Writes to the memory.
        pub fn write(mut this: Self, value: T) -> KBox<T> {
            this.0.write(value);
            // SAFETY: Just written.
            KBox(unsafe { this.0.assume_init() })
        }
    }

    impl<T> Deref for KBox<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for KBox<T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }
}

/// The structure with a field at this address.
#[macro_export]
macro_rules! container_of {
    ($field:expr, $container:ty, $name:ident) => {
        $field
            .byte_sub(::core::mem::offset_of!($container, $name))
            .cast::<$container>()
    };
}
