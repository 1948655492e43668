// SPDX-License-Identifier: GPL-2.0

//! Tables of files under `/proc/sys`: tunables with bounds, constants, and counters.
//!
//! ```ignore
//! static SLOTS: Tunable = Tunable::new(128, 4, 16384);
//! static RECEIVES: Counter = Counter::new();
//!
//! static TABLE: [Entry; 2] = [
//!     Entry::tunable(c"slot_table_entries", &SLOTS),
//!     Entry::counter(c"receives", &RECEIVES),
//! ];
//!
//! let registration = Registration::new(c"sunrpc/example", &TABLE)?;
//! ```
//!
//! Values are statics that exist from the start, whether or not their files do, so there is nothing
//! to undo when registration fails.

use core::{
    fmt::Write,
    ptr::NonNull, //
};

use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::{
    bindings,
    lib::counter::{
        Counter,
        Gauge, //
    }, //
};

use bindings::{
    ctl_table,
    ctl_table_header, //
};

/// A number that the administrator may set within bounds.
///
/// # Invariants
///
/// `min <= value <= max <= i32::MAX`.
pub(crate) struct Tunable {
    value: Atomic<u32>,
    min: u32,
    max: u32,
}

impl Tunable {
    /// A tunable that starts as `default`. Bounds that contradict each other do not compile.
    pub(crate) const fn new(default: u32, min: u32, max: u32) -> Self {
        assert!(min <= default && default <= max && max <= i32::MAX as u32);
        // INVARIANT: Checked above.
        Self {
            value: Atomic::new(default),
            min,
            max,
        }
    }

    /// A file that always reads as `value`; nothing else can be written to it.
    pub(crate) const fn constant(value: u32) -> Self {
        Self::new(value, value, value)
    }

    /// The value now. It may differ at the next call.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.value.load(Relaxed)
    }
}

/// One file of a table.
///
/// # Invariants
///
/// Every pointer in it is to something static, and the handler agrees with what `data` points to.
#[repr(transparent)]
pub(crate) struct Entry(ctl_table);

// SAFETY: Nobody writes to an entry; what its pointers lead to is either constant or atomic.
unsafe impl Sync for Entry {}

impl Entry {
    /// A file to read and set `tunable` by.
    pub(crate) const fn tunable(name: &'static CStr, tunable: &'static Tunable) -> Self {
        // INVARIANT: `proc_dointvec_minmax` wants three integers of `maxlen` bytes each. They are
        // `u32` here and `int` there, which by the invariant of `Tunable` makes no difference.
        Self(ctl_table {
            procname: name.to_bytes_with_nul().as_ptr(),
            data: tunable.value.as_ptr().cast(),
            maxlen: size_of::<u32>() as c_int,
            mode: 0o644,
            proc_handler: Some(bindings::proc_dointvec_minmax),
            poll: core::ptr::null_mut(),
            extra1: (&raw const tunable.min).cast_mut().cast(),
            extra2: (&raw const tunable.max).cast_mut().cast(),
        })
    }

    /// A file to read `counter` by; whatever is written to it resets it.
    pub(crate) const fn counter(name: &'static CStr, counter: &'static Counter) -> Self {
        // INVARIANT: `counter_handler` wants a `Counter`.
        Self(ctl_table {
            procname: name.to_bytes_with_nul().as_ptr(),
            data: (&raw const *counter).cast_mut().cast(),
            maxlen: size_of::<Counter>() as c_int,
            mode: 0o644,
            proc_handler: Some(counter_handler),
            poll: core::ptr::null_mut(),
            extra1: core::ptr::null_mut(),
            extra2: core::ptr::null_mut(),
        })
    }

    /// A file to read `gauge` by.
    pub(crate) const fn gauge(name: &'static CStr, gauge: &'static Gauge) -> Self {
        // INVARIANT: `gauge_handler` wants a `Gauge`.
        Self(ctl_table {
            procname: name.to_bytes_with_nul().as_ptr(),
            data: (&raw const *gauge).cast_mut().cast(),
            maxlen: size_of::<Gauge>() as c_int,
            mode: 0o444,
            proc_handler: Some(gauge_handler),
            poll: core::ptr::null_mut(),
            extra1: core::ptr::null_mut(),
            extra2: core::ptr::null_mut(),
        })
    }
}

/// Reads or resets a counter.
///
/// # Safety
///
/// Called by procfs: `table` is an entry made by [`Entry::counter`], `buffer` has `*lenp` bytes of
/// kernel memory, and `lenp` and `ppos` may be written.
unsafe extern "C" fn counter_handler(
    table: *const ctl_table,
    write: c_int,
    buffer: *mut c_void,
    lenp: *mut usize,
    ppos: *mut bindings::loff_t,
) -> c_int {
    // SAFETY: By this function's contract and the invariant of `Entry`.
    let counter = unsafe { &*(*table).data.cast::<Counter>() };
    if write != 0 {
        counter.reset();
    } else {
        // SAFETY: By this function's contract.
        unsafe { print(counter.sum(), buffer, lenp, ppos) };
    }
    0
}

/// Reads a gauge. Its file cannot be written to.
///
/// # Safety
///
/// As for [`counter_handler`], of an entry made by [`Entry::gauge`].
unsafe extern "C" fn gauge_handler(
    table: *const ctl_table,
    _write: c_int,
    buffer: *mut c_void,
    lenp: *mut usize,
    ppos: *mut bindings::loff_t,
) -> c_int {
    // SAFETY: By this function's contract and the invariant of `Entry`.
    unsafe {
        let gauge = &*(*table).data.cast::<Gauge>();
        print(gauge.get() as u64, buffer, lenp, ppos);
    }
    0
}

/// Prints a number, from where the reader has come to.
///
/// # Safety
///
/// As for [`counter_handler`].
unsafe fn print(number: u64, buffer: *mut c_void, lenp: *mut usize, ppos: *mut bindings::loff_t) {
    let mut line = Line::default();
    // A `Line` holds the longest number there is.
    let _ = writeln!(line, "{number}");
    // SAFETY: By this function's contract.
    let (lenp, ppos) = unsafe { (&mut *lenp, &mut *ppos) };
    let from = usize::try_from(*ppos).unwrap_or(usize::MAX);
    let rest = line.as_bytes().get(from..).unwrap_or(&[]);
    let count = rest.len().min(*lenp);
    // SAFETY: `rest` has `count` bytes, and so has `buffer`.
    unsafe { core::ptr::copy_nonoverlapping(rest.as_ptr(), buffer.cast(), count) };
    *lenp = count;
    // `count` is at most the length of a line, and without it the position was within one.
    *ppos = ppos.saturating_add(count as bindings::loff_t);
}

/// A decimal number and a newline.
#[derive(Default)]
struct Line {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Line {
    /// Digits of `u64::MAX`, and the newline.
    const MAX: usize = 21;

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

impl Write for Line {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let room = room.get_mut(..s.len()).ok_or(core::fmt::Error)?;
        room.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

/// A table whose files exist for as long as this does.
///
/// # Invariants
///
/// `header` is what registering a static table returned, and is not unregistered elsewhere.
pub(crate) struct Registration {
    header: NonNull<ctl_table_header>,
}

// SAFETY: Unregistering is possible from any thread, and there is nothing else to be done with it.
unsafe impl Send for Registration {}
// SAFETY: As above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Makes the files of `table` under `/proc/sys/<path>`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory for them, or one of the names is taken.
    pub(crate) fn new(path: &'static CStr, table: &'static [Entry]) -> Result<Self> {
        // SAFETY: Both live forever, as procfs keeps pointers to them. `Entry` is a `ctl_table`.
        let header = unsafe {
            bindings::register_sysctl_sz(path.as_char_ptr(), table.as_ptr().cast(), table.len())
        };
        // INVARIANT: It is what registering returned.
        Ok(Self {
            header: NonNull::new(header).ok_or(ENOMEM)?,
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant. This waits for handlers that are running.
        unsafe { bindings::unregister_sysctl_table(self.header.as_ptr()) };
    }
}
