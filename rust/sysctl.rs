// SPDX-License-Identifier: GPL-2.0

//! Tables of files under `/proc/sys`: tunables with bounds, constants, counters and gauges.
//!
//! C: svc_rdma.c, svcrdma_counter_handler(), svc_rdma_proc_cleanup()
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)
//!
//! # Examples
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
//! The values are statics, whether or not their files exist, so a failed registration leaves
//! nothing to undo. The kernel crate has no abstraction of sysctl tables.

use core::{
    ffi::CStr,
    fmt::Write,
    ptr::NonNull, //
};

use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

use crate::{
    bindings,
    lib::{
        counter::{
            Counter,
            Gauge, //
        },
        sync::Atomic, //
    }, //
};

use bindings::{
    ctl_table,
    ctl_table_header, //
};

/// A number that the administrator can set within bounds.
///
/// # Invariants
///
/// - I1: `min <= value <= max <= i32::MAX`.
pub(crate) struct Tunable {
    value: Atomic<u32>,
    min: u32,
    max: u32,
}

impl Tunable {
    /// Creates a tunable. Contradictory bounds do not compile.
    pub(crate) const fn new(default: u32, min: u32, max: u32) -> Self {
        assert!(min <= default && default <= max && max <= i32::MAX as u32);
        // INVARIANT: I1: checked above.
        Self {
            value: Atomic::new(default),
            min,
            max,
        }
    }

    /// Creates a tunable that can only have `value`.
    pub(crate) const fn constant(value: u32) -> Self {
        Self::new(value, value, value)
    }

    /// Returns the value. It may differ at the next call.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.value.load(Relaxed)
    }
}

/// A file of a table.
///
/// # Invariants
///
/// - I1: All pointers are to statics, and `data` is of the type that `proc_handler` expects.
#[repr(transparent)]
pub(crate) struct Entry(ctl_table);

// SAFETY: Entries do not change. The statics that they point to are constant or atomic (I1).
unsafe impl Sync for Entry {}

impl Entry {
    /// Creates a file that reads and sets `tunable`.
    pub(crate) const fn tunable(name: &'static CStr, tunable: &'static Tunable) -> Self {
        // INVARIANT: I1: `proc_dointvec_minmax` expects three `int`. All values of a `Tunable` are
        // the same as `u32` and as `int` (its I1).
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

    /// Creates a file that reads `counter`. Any write resets it.
    pub(crate) const fn counter(name: &'static CStr, counter: &'static Counter) -> Self {
        // INVARIANT: I1: `handler::<Counter>` expects a `Counter`.
        Self(ctl_table {
            procname: name.to_bytes_with_nul().as_ptr(),
            data: (&raw const *counter).cast_mut().cast(),
            maxlen: size_of::<Counter>() as c_int,
            mode: 0o644,
            proc_handler: Some(handler::<Counter>),
            poll: core::ptr::null_mut(),
            extra1: core::ptr::null_mut(),
            extra2: core::ptr::null_mut(),
        })
    }

    /// Creates a file that reads `gauge`.
    pub(crate) const fn gauge(name: &'static CStr, gauge: &'static Gauge) -> Self {
        // INVARIANT: I1: `handler::<Gauge>` expects a `Gauge`.
        Self(ctl_table {
            procname: name.to_bytes_with_nul().as_ptr(),
            data: (&raw const *gauge).cast_mut().cast(),
            maxlen: size_of::<Gauge>() as c_int,
            mode: 0o444,
            proc_handler: Some(handler::<Gauge>),
            poll: core::ptr::null_mut(),
            extra1: core::ptr::null_mut(),
            extra2: core::ptr::null_mut(),
        })
    }
}

/// A number that a file of a table shows.
trait Number {
    /// The value.
    fn value(&self) -> u64;

    /// Handles a write to the file.
    fn write(&self);
}

impl Number for Counter {
    fn value(&self) -> u64 {
        self.sum()
    }

    fn write(&self) {
        self.reset();
    }
}

impl Number for Gauge {
    fn value(&self) -> u64 {
        self.get() as u64
    }

    /// The mode of the file does not allow writing.
    fn write(&self) {}
}

/// Reads a number, or handles a write to its file.
///
/// # Safety
///
/// Only procfs calls this. The `data` of `table` points to a static `N`, `buffer` is kernel memory
/// of `*lenp` bytes, and `lenp` and `ppos` are valid for writes.
unsafe extern "C" fn handler<N: Number>(
    table: *const ctl_table,
    write: c_int,
    buffer: *mut c_void,
    lenp: *mut usize,
    ppos: *mut bindings::loff_t,
) -> c_int {
    // SAFETY: By this function's contract.
    let number = unsafe { &*(*table).data.cast::<N>() };
    if write != 0 {
        number.write();
    } else {
        // SAFETY: By this function's contract.
        unsafe { print(number.value(), buffer, lenp, ppos) };
    }
    0
}

/// Prints a number to `buffer`, from position `*ppos` on.
///
/// # Safety
///
/// As for [`handler`].
unsafe fn print(number: u64, buffer: *mut c_void, lenp: *mut usize, ppos: *mut bindings::loff_t) {
    let mut line = Line::default();
    // A `Line` has room for the longest number.
    let _ = writeln!(line, "{number}");
    // SAFETY: Both are valid for writes by this function's contract.
    let (lenp, ppos) = unsafe { (&mut *lenp, &mut *ppos) };
    let from = usize::try_from(*ppos).unwrap_or(usize::MAX);
    let rest = line.as_bytes().get(from..).unwrap_or(&[]);
    let count = rest.len().min(*lenp);
    // SAFETY: `rest` and `buffer` have at least `count` bytes.
    unsafe { core::ptr::copy_nonoverlapping(rest.as_ptr(), buffer.cast(), count) };
    *lenp = count;
    // CAST: `count` is at most the length of a line.
    *ppos = ppos.saturating_add(count as bindings::loff_t);
}

/// A decimal number and a newline.
#[derive(Default)]
struct Line {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Line {
    /// The digits of `u64::MAX` and the newline.
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

/// The registration of a table. Dropping it removes the files.
///
/// # Invariants
///
/// - I1: `header` is that of a registered table, which only this value unregisters.
pub(crate) struct Registration {
    header: NonNull<ctl_table_header>,
}

// SAFETY: Any thread may unregister the table, and I1 does not depend on the thread.
unsafe impl Send for Registration {}
// SAFETY: A shared reference has no methods.
unsafe impl Sync for Registration {}

impl Registration {
    /// Creates the files of `table` under `/proc/sys/<path>`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory, or if one of the files exists.
    pub(crate) fn new(path: &'static CStr, table: &'static [Entry]) -> Result<Self> {
        // SAFETY: Path and table are static, since procfs keeps pointers to them. `Entry` has the
        // layout of a `ctl_table`.
        let header = unsafe {
            bindings::register_sysctl_sz(
                path.to_bytes_with_nul().as_ptr(),
                table.as_ptr().cast(),
                table.len(),
            )
        };
        // INVARIANT: I1: just registered.
        Ok(Self {
            header: NonNull::new(header).ok_or(ENOMEM)?,
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // This waits for handlers that are running.
        // SAFETY: The table is registered (I1), and its registration is dropped.
        unsafe { bindings::unregister_sysctl_table(self.header.as_ptr()) };
    }
}
