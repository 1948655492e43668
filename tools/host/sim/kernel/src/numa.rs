// SPDX-License-Identifier: GPL-2.0

//! Allocations on a NUMA node.

use std::alloc::Layout;
use std::ptr::NonNull;

use crate::alloc_flags::{AllocError, Flags};
use crate::error::{code::EINVAL, Result};
use crate::memory;

/// A NUMA node.
#[derive(Clone, Copy, PartialEq)]
pub struct NumaNode(i32);

impl NumaNode {
    /// Any node.
    pub const NO_NODE: Self = Self(-1);

    /// The node of this number.
    pub fn new(node: i32) -> Result<Self> {
        match node {
            0..64 => Ok(Self(node)),
            _ => Err(EINVAL),
        }
    }
}

/// A source of memory.
///
/// # Safety
///
/// What it returns has the layout, and belongs to the caller.
pub unsafe trait Allocator {
    /// Allocates memory.
    fn alloc(layout: Layout, flags: Flags, nid: NumaNode) -> Result<NonNull<[u8]>, AllocError>;
}

/// The kernel's allocators.
pub mod allocator {
    /// `kmalloc()`.
    pub struct Kmalloc;
}

// SAFETY: The memory is that of a vector of this layout.
unsafe impl Allocator for allocator::Kmalloc {
    fn alloc(layout: Layout, flags: Flags, nid: NumaNode) -> Result<NonNull<[u8]>, AllocError> {
        const WHAT: &str = "a buffer for DMA";
        if memory::fails(flags, WHAT) {
            return Err(AllocError);
        }
        if layout.size() == 0 {
            return Ok(NonNull::slice_from_raw_parts(NonNull::dangling(), 0));
        }
        // SAFETY: The layout has bytes.
        let memory = unsafe {
            if flags.clear() {
                std::alloc::alloc_zeroed(layout)
            } else {
                std::alloc::alloc(layout)
            }
        };
        let memory = NonNull::new(memory).ok_or(AllocError)?;
        memory::note_on(memory.as_ptr().addr(), layout, WHAT, nid.0);
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }
}
