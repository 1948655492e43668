// SPDX-License-Identifier: GPL-2.0

//! What keeps this module from being unloaded: references, and threads that have just put one.

use crate::bindings;

/// A reference to this module, as a transport has one.
///
/// # Invariants
///
/// One reference to the module is this value's.
#[must_use = "it is given back when it is dropped"]
pub(super) struct ModuleRef(());

impl ModuleRef {
    /// For a transport that is being made, during a call of SUNRPC; `None` if the module is about
    /// to go.
    pub(super) fn take() -> Option<Self> {
        // INVARIANT: The reference that was taken.
        // SAFETY: This module, which SUNRPC holds during the call.
        unsafe { bindings::try_module_get(crate::THIS_MODULE.as_ptr()) }.then_some(Self(()))
    }

    /// Leaves it to the transport, whose end takes it back with [`Self::of_transport`].
    pub(super) fn leave(self) {
        core::mem::forget(self);
    }

    /// That of a transport, which ends.
    ///
    /// # Safety
    ///
    /// It was left to the transport, and is taken back once.
    pub(super) unsafe fn of_transport() -> Self {
        // INVARIANT: By this function's contract.
        Self(())
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants.
        unsafe { bindings::module_put(crate::THIS_MODULE.as_ptr()) };
    }
}

/// Waits, when it is dropped, until whoever put the last reference has left this module.
///
/// That thread still has the ends of a few functions before it, and from the moment of the put the
/// module may be unloaded: SUNRPC leaves the put to us, so it cannot be the kernel's last step.
/// None of those functions sleeps any more. Tasks RCU tells when each task that was preempted
/// anywhere has slept of its own accord, or has gone back to user space. What runs with preemption
/// disabled the unloading itself waits for. (A preemptible kernel without tasks RCU, which tracing
/// and BPF bring, has nothing to wait for such tasks with.)
pub(crate) struct ExitBarrier(());

impl ExitBarrier {
    /// For the module, which drops it last of all.
    pub(crate) fn awaited() -> Self {
        Self(())
    }
}

impl Drop for ExitBarrier {
    fn drop(&mut self) {
        // SAFETY: The module's exit, or its init that failed, may sleep.
        unsafe { bindings::rpcrdma_synchronize_rcu_tasks() };
    }
}
