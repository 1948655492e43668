// SPDX-License-Identifier: GPL-2.0

//! References to this module, and the barrier that its exit needs after the last put.

use crate::bindings;

use super::class::Setup;

/// A reference to the module that owns a transport class.
///
/// # Invariants
///
/// - I1: The module is loaded, and one of the references that it counts belongs to this value.
#[must_use = "dropping it puts the reference"]
pub(super) struct ModuleRef(*mut bindings::module);

impl ModuleRef {
    /// Takes a reference for a transport that is being created; `None` if the module is going away.
    pub(super) fn take(setup: &Setup<'_>) -> Option<Self> {
        // SAFETY: The class is a static of its owner, which by I2 of `Setup` SUNRPC holds, so it is
        // loaded. `owner` is not written after registration.
        unsafe {
            let owner = (*setup.class()).owner;
            // INVARIANT: I1: `try_module_get` counted the reference. Without one no value is made:
            // its drop would put it.
            bindings::try_module_get(owner).then(|| Self(owner))
        }
    }

    /// Leaves the reference to the transport. [`Self::of_transport`] takes it back.
    pub(super) fn leave(self) {
        core::mem::forget(self);
    }

    /// Takes back the reference that was left to a transport.
    ///
    /// # Safety
    ///
    /// [`Self::leave`] left a reference to the owner of the class of `raw`, and no other call takes
    /// it back. The memory of `raw` is there.
    pub(super) unsafe fn of_transport(raw: *mut bindings::rpc_xprt) -> Self {
        // SAFETY: The class of a transport never changes. The class is a static of its owner, which
        // the reference that was left keeps loaded.
        let owner = unsafe { (*(*raw).xprt_class).owner };
        // INVARIANT: I1: By this function's contract.
        Self(owner)
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: By I1 there is a reference to put, which no other value puts.
        unsafe { bindings::module_put(self.0) };
    }
}

/// Waits, when dropped, until the thread that put the last module reference has left this module.
///
/// A transport puts its module reference from code of this module, which then still executes the
/// ends of a few functions. The module may be unloaded as soon as the reference is put. None of
/// those functions sleeps, so a grace period of tasks RCU covers them: it ends when each task that
/// was preempted has slept voluntarily or returned to user space. Code with preemption disabled
/// needs no barrier, because unloading a module waits for it anyway. A preemptible kernel without
/// tasks RCU (which tracing and BPF select) cannot wait for such a thread.
pub(crate) struct ExitBarrier(());

impl ExitBarrier {
    /// The barrier. It must be the last part of the module to be dropped.
    pub(crate) fn new() -> Self {
        Self(())
    }
}

impl Drop for ExitBarrier {
    fn drop(&mut self) {
        // SAFETY: Runs in the module's exit or in its failed init, both of which may sleep.
        unsafe { bindings::rpcrdma_synchronize_rcu_tasks() };
    }
}
