// SPDX-License-Identifier: GPL-2.0

//! The slots that wait for an RPC.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    types::Opaque, //
};

use crate::bindings;

use super::{
    slot::Slot,
    transport::Transport, //
};

/// The slots that no RPC uses.
///
/// # Invariants
///
/// The list links slots that are idle, have no Reply, and live until the transport is destroyed.
#[pin_data]
pub(super) struct FreeSlots {
    list: Opaque<bindings::llist_head>,
    /// Taking one out of a lock-free list is for one thread at a time.
    #[pin]
    taking: kernel::sync::SpinLock<()>,
}

impl FreeSlots {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list: Opaque::zeroed(),
            taking <- kernel::new_spinlock!((), "FreeSlots::taking"),
        })
    }

    /// Takes one out.
    ///
    /// # Safety
    ///
    /// All that was put in are slots of a `T`.
    #[inline]
    pub(super) unsafe fn take<T: Transport>(&self) -> Option<NonNull<Slot<T>>> {
        let node = {
            let _taking = self.taking.lock();
            // SAFETY: A valid list; takers are serialised.
            unsafe { bindings::llist_del_first(self.list.get()) }
        };
        if node.is_null() {
            return None;
        }
        // SAFETY: The node is the `free` member of a slot, by the type's invariants.
        NonNull::new(
            unsafe { kernel::container_of!(Opaque::cast_from(node), Slot<T>, free) }.cast_mut(),
        )
    }

    /// Puts one back.
    ///
    /// # Safety
    ///
    /// As the type's invariants say.
    #[inline]
    pub(super) unsafe fn put<T: Transport>(&self, slot: &Slot<T>) {
        let node = slot.free.get();
        // SAFETY: The slot is in no list and stays in place.
        unsafe { bindings::rpcrdma_llist_add_batch(node, node, self.list.get()) };
    }
}
