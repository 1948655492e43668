// SPDX-License-Identifier: GPL-2.0

//! Error codes.

use core::fmt;
use core::num::NonZeroI32;

use crate::alloc_flags::{AllocError, PushError, RemoveError};
use crate::ffi::{c_int, c_void};

/// An errno.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(NonZeroI32);

/// A result with the kernel's error type.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

macro_rules! codes {
    ($($name:ident = $errno:literal,)*) => {
        /// The codes.
        pub mod code {
            use super::Error;
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub const $name: Error = Error::of(-$errno);
            )*
        }

        impl fmt::Debug for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match -self.0.get() {
                    $($errno => f.write_str(stringify!($name)),)*
                    other => write!(f, "errno {other}"),
                }
            }
        }
    };
}

codes! {
    EPERM = 1,
    ENOENT = 2,
    EIO = 5,
    E2BIG = 7,
    EBADF = 9,
    EAGAIN = 11,
    ENOMEM = 12,
    EBUSY = 16,
    EEXIST = 17,
    ENODEV = 19,
    EINVAL = 22,
    ENOSPC = 28,
    EPIPE = 32,
    ERANGE = 34,
    EOVERFLOW = 75,
    EPROTO = 71,
    EMSGSIZE = 90,
    EADDRINUSE = 98,
    EADDRNOTAVAIL = 99,
    ENETDOWN = 100,
    ENETUNREACH = 101,
    ECONNRESET = 104,
    ENOTCONN = 107,
    ETIMEDOUT = 110,
    ECONNREFUSED = 111,
    EHOSTUNREACH = 113,
}

impl Error {
    const fn of(errno: i32) -> Self {
        match NonZeroI32::new(errno) {
            Some(errno) => Self(errno),
            None => panic!("no error"),
        }
    }

    /// The error of a negative errno.
    pub fn from_errno(errno: c_int) -> Self {
        assert!((-4095..0).contains(&errno), "not an errno: {errno}");
        Self::of(errno)
    }

    /// The negative errno.
    pub fn to_errno(self) -> c_int {
        self.0.get()
    }

    /// `ERR_PTR()`.
    pub fn to_ptr<T>(self) -> *mut T {
        (self.0.get() as isize as usize) as *mut T
    }
}

/// Whether C says so.
pub fn to_result(errno: c_int) -> Result {
    if errno < 0 {
        Err(Error::from_errno(errno))
    } else {
        Ok(())
    }
}

/// `PTR_ERR_OR_ZERO()`, with the pointer.
pub fn from_err_ptr<T>(ptr: *mut T) -> Result<*mut T> {
    let value = ptr.cast::<c_void>() as isize;
    if (-4095..0).contains(&value) {
        Err(Error::from_errno(value as c_int))
    } else {
        Ok(ptr)
    }
}

impl From<AllocError> for Error {
    fn from(_: AllocError) -> Self {
        code::ENOMEM
    }
}

impl<T> From<PushError<T>> for Error {
    fn from(_: PushError<T>) -> Self {
        code::EINVAL
    }
}

impl From<RemoveError> for Error {
    fn from(_: RemoveError) -> Self {
        code::EINVAL
    }
}

impl From<core::num::TryFromIntError> for Error {
    fn from(_: core::num::TryFromIntError) -> Self {
        code::EINVAL
    }
}

impl From<core::str::Utf8Error> for Error {
    fn from(_: core::str::Utf8Error) -> Self {
        code::EINVAL
    }
}

impl From<core::fmt::Error> for Error {
    fn from(_: core::fmt::Error) -> Self {
        code::EINVAL
    }
}

impl From<core::convert::Infallible> for Error {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}
