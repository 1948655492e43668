// SPDX-License-Identifier: GPL-2.0

//! The functions behind trace events. Each copies its arguments, as in the kernel.

use core::ffi::CStr;
use core::hint::black_box;

use super::{
    __kernel_sockaddr_storage, rpc_rdma_cid, rpcrdma_trace_mr, rpcrdma_trace_task, sockaddr,
};

/// An argument of a trace event.
pub(crate) trait Traced {
    /// Reads it, with the memory that it points to.
    unsafe fn copy(self);
}

macro_rules! values {
    ($($ty:ty),*) => {$(
        impl Traced for $ty {
            unsafe fn copy(self) {
                black_box(self);
            }
        }
    )*};
}
values!(
    bool,
    i32,
    u32,
    i64,
    u64,
    isize,
    usize,
    rpc_rdma_cid,
    rpcrdma_trace_task
);

impl Traced for *const u32 {
    unsafe fn copy(self) {
        // All events read at least three words.
        black_box(unsafe { *self.cast::<[u32; 3]>() });
    }
}

impl Traced for *const u8 {
    unsafe fn copy(self) {
        black_box(unsafe { CStr::from_ptr(self.cast()) }.to_owned());
    }
}

impl Traced for *const rpcrdma_trace_mr {
    unsafe fn copy(self) {
        black_box(unsafe { self.read() });
    }
}

impl Traced for *const sockaddr {
    unsafe fn copy(self) {
        if !self.is_null() {
            black_box(unsafe { self.cast::<__kernel_sockaddr_storage>().read() });
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/trace_events.rs"));
