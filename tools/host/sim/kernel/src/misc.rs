// SPDX-License-Identifier: GPL-2.0

//! Time, text, pages, print, CPUs.

use core::ffi::CStr;

/// `struct module`.
#[derive(Default)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the name is that of C")]
pub struct module {
    /// The references.
    pub refs: core::cell::Cell<usize>,
    /// It is being unloaded: no reference can be taken any more.
    pub going: core::cell::Cell<bool>,
}

thread_local! {
    static MODULE: &'static module = Box::leak(Box::default());
}

pub(crate) fn this_module() -> *mut module {
    MODULE.with(|module| core::ptr::from_ref(*module).cast_mut())
}

/// Types of C.
pub mod ffi {
    #![allow(non_camel_case_types, reason = "the names are those of C")]

    pub use core::ffi::{
        c_int, c_longlong, c_schar, c_short, c_uint, c_ulonglong, c_ushort, c_void,
    };

    /// `char`, as the kernel crate has it.
    pub type c_char = u8;
    /// `long`, as the kernel crate has it.
    pub type c_long = isize;
    /// `unsigned long`, as the kernel crate has it.
    pub type c_ulong = usize;
}

/// Text.
pub mod fmt {
    pub use core::fmt::*;
}

/// Pages.
pub mod page {
    /// Binary logarithm of the page size.
    pub const PAGE_SHIFT: usize = 12;
    /// Bytes in a page.
    pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
}

/// CPUs.
pub mod cpu {
    /// The number of a CPU.
    pub struct CpuId(u32);

    impl CpuId {
        /// That of this context.
        pub fn current() -> Self {
            Self(crate::sched::current().unwrap_or(0) as u32 % 4)
        }

        /// The number.
        pub fn as_u32(&self) -> u32 {
            self.0
        }
    }
}

/// Time.
pub mod time {
    use core::marker::PhantomData;

    use crate::sched;

    /// Milliseconds.
    pub type Msecs = u32;
    /// Jiffies.
    pub type Jiffies = usize;

    /// At 1000 jiffies a second.
    pub fn msecs_to_jiffies(msecs: Msecs) -> Jiffies {
        msecs as Jiffies
    }

    /// A monotonic clock.
    #[derive(Clone, Copy)]
    pub struct Monotonic;

    /// A time.
    #[derive(Clone, Copy)]
    pub struct Instant<C = Monotonic>(u64, PhantomData<C>);

    impl<C> Instant<C> {
        /// Now.
        pub fn now() -> Self {
            Self(sched::now(), PhantomData)
        }

        /// The time since then.
        pub fn elapsed(&self) -> Delta {
            Delta((sched::now() - self.0) as i64)
        }
    }

    /// A duration.
    #[derive(Clone, Copy)]
    pub struct Delta(i64);

    impl Delta {
        /// None.
        pub const ZERO: Self = Self(0);

        /// In microseconds.
        pub fn as_micros_ceil(self) -> i64 {
            (self.0 + 999) / 1000
        }
    }
}

/// Strings.
pub mod str {
    use crate::alloc_flags::AllocError;
    use core::ffi::CStr;

    /// An owned string of C.
    pub struct CString(std::ffi::CString);

    impl CString {
        /// A formatted string.
        pub fn try_from_fmt(args: core::fmt::Arguments<'_>) -> Result<Self, AllocError> {
            let text = std::fmt::format(args);
            Ok(Self(std::ffi::CString::new(text).map_err(|_| AllocError)?))
        }
    }

    impl core::ops::Deref for CString {
        type Target = CStr;

        fn deref(&self) -> &CStr {
            &self.0
        }
    }
}

/// What the kernel adds to strings of C.
pub trait CStrExt {
    /// The string at this address.
    ///
    /// # Safety
    ///
    /// It stays for `'a`.
    unsafe fn from_char_ptr<'a>(ptr: *const u8) -> &'a CStr {
        // SAFETY: By this function's contract.
        unsafe { CStr::from_ptr(ptr.cast()) }
    }
}

impl CStrExt for CStr {}

/// Files of lines.
pub mod seq_file {
    use core::cell::RefCell;

    /// A file.
    #[derive(Default)]
    pub struct SeqFile(RefCell<String>);

    impl SeqFile {
        /// A file of C.
        ///
        /// # Safety
        ///
        /// `ptr` is a `SeqFile`, which stays for `'a`.
        pub unsafe fn from_raw<'a, T>(ptr: *mut T) -> &'a Self {
            // SAFETY: By this function's contract.
            unsafe { &*ptr.cast() }
        }

        /// Adds text.
        pub fn call_printf(&self, args: core::fmt::Arguments<'_>) {
            self.0.borrow_mut().push_str(&std::fmt::format(args));
        }

        /// The text.
        pub fn text(&self) -> String {
            self.0.borrow().clone()
        }
    }
}

/// Adds text to a file.
#[macro_export]
macro_rules! seq_print {
    ($file:expr, $($arg:tt)*) => { $file.call_printf(format_args!($($arg)*)) };
}

/// The log.
pub mod print {
    use std::cell::RefCell;

    thread_local! {
        static ERRORS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    /// Logs a message.
    pub fn log(level: &str, args: core::fmt::Arguments<'_>) {
        crate::say!("log: {level}: {}", args.to_string().trim_end());
        if level == "err" {
            ERRORS.with_borrow_mut(|errors| errors.push(args.to_string()));
        }
    }

    /// The errors that were logged since the last call.
    pub fn errors() -> Vec<String> {
        ERRORS.take()
    }
}

/// Logs a message.
#[macro_export]
macro_rules! pr_err {
    ($($arg:tt)*) => { $crate::print::log("err", format_args!($($arg)*)) };
}

/// Logs a message.
#[macro_export]
macro_rules! pr_warn {
    ($($arg:tt)*) => { $crate::print::log("warn", format_args!($($arg)*)) };
}

/// Logs a message.
#[macro_export]
macro_rules! pr_notice {
    ($($arg:tt)*) => { $crate::print::log("notice", format_args!($($arg)*)) };
}

/// Logs a message.
#[macro_export]
macro_rules! pr_info {
    ($($arg:tt)*) => { $crate::print::log("info", format_args!($($arg)*)) };
}

/// Logs a message.
#[macro_export]
macro_rules! pr_debug {
    ($($arg:tt)*) => { $crate::print::log("debug", format_args!($($arg)*)) };
}
