// SPDX-License-Identifier: GPL-2.0

//! The memory in which SUNRPC encodes Calls and decodes Replies.
//!
//! The C module maps each buffer for DMA as a whole. Here the mapping belongs to the Send.
//!
//! C: xprt_rdma.h, struct rpcrdma_regbuf
//! C: transport.c, rpcrdma_check_regbuf()
//! C: verbs.c, rpcrdma_regbuf_realloc(), rpcrdma_regbuf_realloc_node(), rpcrdma_regbuf_alloc()
//! C: verbs.c, rpcrdma_regbuf_free()

use core::{
    ffi::c_void,
    ptr::NonNull, //
};

use kernel::prelude::*;

use crate::bindings;

/// The least length that a buffer grows to. Most RPCs need no more.
const MIN_GROWN: usize = 2048;

/// A `kmalloc()` buffer, which has a linear mapping that can be mapped for DMA page by page. SUNRPC
/// accesses the bytes through its own pointers, so this type makes no reference to them.
///
/// # Invariants
///
/// - I1: `memory` comes from `kmalloc()` for `len` bytes, and only this value frees it.
pub(super) struct Buffer {
    memory: NonNull<c_void>,
    len: usize,
}

// SAFETY: `kmalloc()` memory is not bound to a thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Allocates a buffer. Sleeps.
    pub(super) fn new(len: usize) -> Result<Self> {
        Self::with_flags(len, bindings::GFP_KERNEL)
    }

    fn with_flags(len: usize, flags: bindings::gfp_t) -> Result<Self> {
        // SAFETY: `kmalloc_node()` has no preconditions.
        let memory = unsafe { bindings::rpcrdma_kmalloc_node(len, flags, bindings::NUMA_NO_NODE) };
        let memory = NonNull::new(memory).ok_or(ENOMEM)?;
        // INVARIANT: I1: allocated above.
        Ok(Self { memory, len })
    }

    /// Makes the buffer at least `len` bytes long, without keeping its content. Returns how many
    /// bytes were allocated. Allocates with the flags that the current RPC task may use.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(super) fn grow(&mut self, len: usize) -> Result<usize> {
        if len <= self.len {
            return Ok(0);
        }
        self.allocate(len.max(MIN_GROWN))
    }

    #[cold]
    fn allocate(&mut self, len: usize) -> Result<usize> {
        // SAFETY: Reads flags of the current thread.
        let flags = unsafe { bindings::rpc_task_gfp_mask() };
        *self = Self::with_flags(len, flags)?;
        Ok(len)
    }

    /// The first byte.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut c_void {
        self.memory.as_ptr()
    }

    /// The length in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: By I1 the memory comes from `kmalloc()`, and this is its only `kfree()`.
        unsafe { bindings::kfree(self.memory.as_ptr()) };
    }
}
