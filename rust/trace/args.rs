// SPDX-License-Identifier: GPL-2.0

//! The arguments of trace events: plain values, and groups of values that belong together.
//!
//! C: rpc_rdma_cid.h, struct rpc_rdma_cid

use core::ffi::CStr;

use kernel::{
    ffi::c_char,
    sync::atomic::Relaxed, //
};

use crate::{
    bindings,
    lib::{
        sockaddr::SockAddr,
        sync::Atomic, //
    }, //
};

/// An RPC task, as SUNRPC's own events identify it.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// The task's number.
    pub(crate) id: u32,
    /// The number of the RPC client; all ones for a task without a client.
    pub(crate) client: u32,
}

impl Task {
    /// No task.
    pub(crate) const NONE: Self = Self {
        id: u32::MAX,
        client: u32::MAX,
    };
}

/// A completion id, which ties a completion to the work request that was posted.
///
/// C header: [`include/linux/sunrpc/rpc_rdma_cid.h`](srctree/include/linux/sunrpc/rpc_rdma_cid.h)
#[derive(Clone, Copy)]
pub(crate) struct Cid {
    /// The resource number of the CQ.
    pub(crate) queue: u32,
    /// The number of the work request.
    pub(crate) id: i32,
}

impl Cid {
    /// Returns a new number, for an object that keeps it for all its completions.
    pub(crate) fn serial() -> i32 {
        static LAST: Atomic<i32> = Atomic::new(0);
        LAST.fetch_add(1, Relaxed)
    }
}

/// An MR, and the segment that it exposes.
pub(crate) use bindings::rpcrdma_trace_mr as Mr;

/// The way in which a Call or its Reply is conveyed, as `xprtrdma_marshal` prints it. The values
/// are those of `xprtrdma_show_chunktype()` in `include/trace/misc/rpcrdma.h`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum ChunkType {
    /// Inline, for a Reply.
    Inline,
    /// Inline, copied into the Send buffer.
    PullUp,
    /// Inline, gathered by the device from the pages of the Call.
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

/// An argument of a trace event, as its C prototype has it.
///
/// # Safety
///
/// While `self` is borrowed, C may read the value that `raw` returns, and the memory that it points
/// to.
pub(super) unsafe trait Argument {
    /// The type in the event's C prototype.
    type Raw;

    /// Converts the value.
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
unsafe impl Argument for ChunkType {
    type Raw = u32;

    fn raw(&self) -> u32 {
        *self as u32
    }
}

// SAFETY: The pointer is to the first of `N` words in `self`. The events read as many words as the
// prototypes of this room say.
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

// SAFETY: The pointer is to the value that `self` borrows.
unsafe impl Argument for &Mr {
    type Raw = *const Mr;

    fn raw(&self) -> Self::Raw {
        *self
    }
}

// SAFETY: The pointer is null, or to the address in `self`, which is a `sockaddr_storage`.
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
        self.to_bytes_with_nul().as_ptr()
    }
}
