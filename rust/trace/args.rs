// SPDX-License-Identifier: GPL-2.0

//! What trace events take: plain values, and a few of them together where they belong together.

use kernel::{
    ffi::c_char,
    str::{
        CStr,
        CStrExt, //
    },
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr, //
};

/// An RPC task as SUNRPC's own events name it.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// The task's number.
    pub(crate) id: u32,
    /// The number of the RPC client; all ones for a task without one.
    pub(crate) client: u32,
}

/// A completion id: what ties a completion to the work request that was posted.
#[derive(Clone, Copy)]
pub(crate) struct Cid {
    /// The completion queue's resource number.
    pub(crate) queue: u32,
    /// A number that the poster chose.
    pub(crate) id: i32,
}

impl Cid {
    /// A number for what completions are to be told apart by: one for each object, all its life.
    pub(crate) fn serial() -> i32 {
        static LAST: Atomic<i32> = Atomic::new(0);
        LAST.fetch_add(1, Relaxed)
    }
}

/// A memory region, and the segment that it exposes.
pub(crate) use bindings::rpcrdma_trace_mr as Mr;

/// How a Call or its Reply is conveyed, as `xprtrdma_marshal` prints it.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Conveyance {
    /// Inline; for a Reply, the way it is.
    Inline,
    /// Inline, copied into the Send buffer.
    PullUp,
    /// Inline, gathered from where it lies.
    Mapped,
    /// One item in a Read chunk.
    ReadChunk,
    /// The whole Call in a Position-zero Read chunk.
    PositionZero,
    /// One item in a Write chunk.
    WriteChunk,
    /// The whole Reply in a Reply chunk.
    ReplyChunk,
}

/// A value as C takes it.
///
/// # Safety
///
/// What `raw` returns is good for C to read for as long as `self` is borrowed.
pub(super) unsafe trait Argument {
    /// The type in the event's C prototype.
    type Raw;

    /// Lends the value to C.
    fn raw(&self) -> Self::Raw;
}

macro_rules! scalars {
    ($($ty:ty),*) => {$(
        // SAFETY: A scalar is passed by value.
        unsafe impl Argument for $ty {
            type Raw = $ty;

            fn raw(&self) -> $ty {
                *self
            }
        }
    )*};
}
scalars!(bool, i32, u32, i64, u64, isize, usize);

// SAFETY: Passed by value.
unsafe impl Argument for Conveyance {
    type Raw = u32;

    fn raw(&self) -> u32 {
        *self as u32
    }
}

// SAFETY: The pointer is to the first of `N` words in `self`, and events read no more than the
// prototype here says.
unsafe impl<const N: usize> Argument for [u32; N] {
    type Raw = *const u32;

    fn raw(&self) -> Self::Raw {
        self.as_ptr()
    }
}

// SAFETY: Passed by value.
unsafe impl Argument for Task {
    type Raw = bindings::rpcrdma_trace_task;

    fn raw(&self) -> Self::Raw {
        bindings::rpcrdma_trace_task {
            task_id: self.id,
            client_id: self.client,
        }
    }
}

// SAFETY: Passed by value.
unsafe impl Argument for Cid {
    type Raw = bindings::rpc_rdma_cid;

    fn raw(&self) -> Self::Raw {
        bindings::rpc_rdma_cid {
            ci_queue_id: self.queue,
            ci_completion_id: self.id,
        }
    }
}

// SAFETY: The pointer is to what `self` borrows.
unsafe impl Argument for &Mr {
    type Raw = *const Mr;

    fn raw(&self) -> Self::Raw {
        *self
    }
}

// SAFETY: The pointer is to the address in `self`, which is a whole `sockaddr_storage`, or null.
unsafe impl Argument for Option<SockAddr> {
    type Raw = *const bindings::sockaddr;

    fn raw(&self) -> Self::Raw {
        self.as_ref().map_or(core::ptr::null(), SockAddr::as_ptr)
    }
}

// SAFETY: The pointer is to a NUL-terminated string that outlives the borrow of `self`.
unsafe impl Argument for &CStr {
    type Raw = *const c_char;

    fn raw(&self) -> Self::Raw {
        self.as_char_ptr()
    }
}
