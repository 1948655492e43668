// SPDX-License-Identifier: GPL-2.0

//! Memory in which SUNRPC encodes Calls and decodes Replies.

use core::{
    ffi::c_void,
    ptr::NonNull, //
};

use kernel::prelude::*;

use crate::bindings;

/// No NUMA node in particular.
const ANY_NODE: c_int = -1;

/// A buffer from `kmalloc`, so that it can be mapped page by page. SUNRPC reads and writes it
/// through pointers of its own, so nothing here refers to the content.
///
/// # Invariants
///
/// `memory` points to `len` bytes from `kmalloc`.
pub(super) struct Buffer {
    memory: NonNull<c_void>,
    len: usize,
}

// SAFETY: A buffer owns its memory.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Allocates a buffer; may sleep.
    pub(super) fn new(len: usize) -> Result<Self> {
        Self::with_flags(len, bindings::GFP_KERNEL)
    }

    fn with_flags(len: usize, flags: bindings::gfp_t) -> Result<Self> {
        // SAFETY: Any size will do.
        let memory = unsafe { bindings::rpcrdma_kmalloc_node(len, flags, ANY_NODE) };
        let memory = NonNull::new(memory).ok_or(ENOMEM)?;
        // INVARIANT: Just allocated.
        Ok(Self { memory, len })
    }

    /// Sees to it that there are at least `len` bytes, without keeping the content; `true` if that
    /// took another allocation. For an RPC's task: allocates as that may.
    #[inline]
    pub(super) fn grow(&mut self, len: usize) -> Result<bool> {
        if len <= self.len {
            return Ok(false);
        }
        // SAFETY: Looks at the current task only.
        let flags = unsafe { bindings::rpc_task_gfp_mask() };
        *self = Self::with_flags(len, flags)?;
        Ok(true)
    }

    /// Where it starts.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut c_void {
        self.memory.as_ptr()
    }

    /// Its bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: From `kmalloc`, by the type's invariants.
        unsafe { bindings::kfree(self.memory.as_ptr()) };
    }
}
