// SPDX-License-Identifier: GPL-2.0

//! Fencing: memory is neither read nor freed while the peer can reach it (RFC 8166 Section 4.4.1).
//!
//! The owner of the memory travels along: [`Reachable`] -> the device, with the LOCAL_INVs ->
//! [`Fenced`], or [`Unreachable`] if the QP has entered the error state first.
//!
//! C: frwr_ops.c, frwr_unmap_async(), frwr_unmap_sync(), frwr_wc_localinv_done()

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::SpinLockGuard, //
};

use crate::{
    bindings,
    lib::fence::{
        fenced_if,
        ExposedOn,
        Fenced,
        Locked,
        Owner,
        Reachable,
        Unreachable, //
    },
    trace::trace,
    verbs::endpoint::{
        completion::{
            handler,
            OnCompletion,
            SendCq,
            SendWorker,
            WcStatus, //
        },
        ep::{
            Endpoint,
            EndpointBox, //
        },
        invalidated::Invalidated,
        ops::EndpointOps, //
    }, //
};

use super::{
    exposes::{
        Exposes,
        Waiting,
        WaitingFor, //
    },
    mr_alloc::{
        Invalidation,
        Mr,
        Posted,
        Waiter, //
    },
    mr_list::{
        MrList,
        Registered, //
    }, //
};

impl<C: EndpointOps> Endpoint<C> {
    /// Publishing MRs and posting their registrations is one critical section.
    ///
    /// A hostile peer may answer before the post. A LOCAL_INV ahead of its REG_MR would leave the
    /// MR valid while its pages are reused. Therefore an invalidation takes this lock before it is
    /// posted. Innermost, except for the lock of whatever the MRs are published in.
    #[inline]
    pub(in crate::verbs) fn exposing(&self) -> SpinLockGuard<'_, ()> {
        self.exposing.lock()
    }
}

impl<W> Locked<'_, MrList<Registered, W>> {
    /// Takes out the MR that the peer has invalidated; `false` if it is not one of these.
    #[inline]
    pub(crate) fn take_invalidated<C: EndpointOps>(
        self,
        ep: &Endpoint<C>,
        invalidated: Invalidated,
    ) -> bool {
        // SAFETY: Takes out only an MR that is invalid.
        unsafe { self.into_mut() }.take_invalidated(ep, invalidated)
    }
}

impl<O: Owner<MrList<Registered, W>>, W> Reachable<O, MrList<Registered, W>> {
    /// The owner, if nothing exposes its memory.
    ///
    /// # Errors
    ///
    /// `self`, if there are MRs.
    #[inline]
    pub(crate) fn try_fence(self) -> Result<Fenced<O>, Self> {
        if !self.exposed().is_empty() {
            return Err(self);
        }
        // SAFETY: The peer can reach the owner's memory by these MRs only, and there are none.
        Ok(unsafe { Fenced::new(self.into_parts().0) })
    }
}

/// LOCAL_INVs could not be posted.
pub(crate) struct NotInvalidated<O> {
    pub(crate) error: Error,
    /// The owner; `None` if the MRs are another endpoint's: it has them back.
    pub(crate) owner: Option<Unreachable<O>>,
}

impl<O, U> Reachable<O, MrList<Registered, Waiting<O, U>>>
where
    O: Owner<MrList<Registered, Waiting<O, U>>> + Send + 'static,
    U: Send + 'static,
{
    /// Invalidates the MRs. The owner comes back by [`Exposes::invalidated`] when they are invalid
    /// or the QP is in the error state, and `token` with it.
    ///
    /// # Errors
    ///
    /// [`NotInvalidated`]; `token` is dropped. The QP is then in the error state; to bring it there
    /// may sleep.
    #[inline]
    pub(crate) fn invalidate<C: Exposes<Owner = O, Token = U>>(
        self,
        ep: &Endpoint<C>,
        token: U,
    ) -> Result<(), NotInvalidated<O>> {
        if !self.exposed().pd().is_some_and(|pd| ep.owns(pd)) {
            ep.set_qp_error();
            return Err(NotInvalidated {
                error: EINVAL,
                owner: None,
            });
        }
        // SAFETY: The owner is not used before it comes back.
        let (owner, mrs) = unsafe { self.into_parts() };
        let waiter = Waiter::Token(Waiting { owner, token });
        match post_inv(ep, mrs, waiter) {
            Ok(()) | Err((_, Waiter::Task(_))) => Ok(()),
            Err((error, Waiter::Token(Waiting { owner, .. }))) => Err(NotInvalidated {
                error,
                // SAFETY: `post_inv` has unmapped the MRs, and the QP is in the error state.
                owner: Some(unsafe { Unreachable::new(owner) }),
            }),
        }
    }
}

impl<O, C> Reachable<O, MrList<Registered, WaitingFor<C>>>
where
    O: Owner<MrList<Registered, WaitingFor<C>>> + ExposedOn<Endpoint = EndpointBox<C>>,
    C: Exposes,
{
    /// Invalidates the MRs, and waits until they are invalid or the QP is in the error state. If
    /// that takes long, moves the QP to the error state.
    ///
    /// # Errors
    ///
    /// The owner, if the QP is in the error state.
    pub(crate) fn invalidate_and_wait(self) -> Result<Fenced<O>, Unreachable<O>> {
        // SAFETY: The owner's memory is not used before the MRs are unmapped.
        let (owner, mrs) = unsafe { self.into_parts() };
        let ep = owner.endpoint();
        let invalid = if mrs.pd().is_some_and(|pd| ep.owns(pd)) {
            pin_init::stack_pin_init!(let invalidation = Invalidation::new());
            // SAFETY: This waits below, unless the result comes back.
            let task = unsafe { invalidation.waiter() };
            post_inv(ep, mrs, Waiter::Task(task)).is_ok() && invalidation.wait(|| ep.set_qp_error())
        } else {
            // The endpoint that the MRs were registered on has been dropped.
            false
        };
        // SAFETY: The MRs are unmapped. All have been invalidated, or their QP is gone or in the
        // error state.
        unsafe { fenced_if(invalid, owner) }
    }
}

/// Posts LOCAL_INVs of `mrs`, which are of this endpoint, in one chain. Only the last one is
/// signalled: the work requests of one Send Queue complete in order. Needs no lock.
///
/// # Errors
///
/// The waiter comes back if the chain could not be posted. The QP is in the error state then, and
/// the MRs are unmapped.
#[inline]
fn post_inv<C: Exposes>(
    ep: &Endpoint<C>,
    mrs: MrList<Registered, WaitingFor<C>>,
    waiter: Waiter<WaitingFor<C>>,
) -> Result<(), (Error, Waiter<WaitingFor<C>>)> {
    let (passed, last) = (handler::<C, PassedInv>(), handler::<C, LastInv>());
    let chain = match mrs.prepare_inv(passed, last, waiter) {
        Ok(chain) => chain,
        Err(waiter) => {
            ep.set_qp_error();
            return Err((EINVAL, waiter));
        }
    };
    // The thread that posted the registrations has left `ib_post_send()` after this.
    drop(ep.exposing());
    // SAFETY: The chain is well formed. It is part of MRs, which the pool keeps until the queues
    // are drained, and its CQEs expect this endpoint's kind of context.
    let Err((error, _)) = (unsafe { ep.post_send_raw(chain.inv) }) else {
        ep.inv_accepted();
        return Ok(());
    };
    ep.inv_failed(error);
    ep.set_qp_error();
    // SAFETY: The QP is in the error state, and the endpoint, which is borrowed, keeps the pool
    // until its queues are drained.
    match unsafe { take_back(chain.last) } {
        Some(waiter) => Err((error, waiter)),
        // All were posted, and have completed.
        None => Ok(()),
    }
}

/// Takes back the chain in the MR `last` after a failed post, and unmaps the MRs; `None` if the
/// last LOCAL_INV has completed. Some, all or none of the LOCAL_INVs may have been posted. They
/// stay in place, and so do the MRs, which are not used again.
///
/// The caller cannot wait for a completion: there may be none. Nor can it wait for the end of the
/// queues: a task fences with the mutex that the end of the connection takes.
///
/// # Safety
///
/// The chain is put into `last`, and its QP is in the error state. A reference to the endpoint of
/// the MRs is in use, and their pool stays.
#[cold]
unsafe fn take_back<W>(last: NonNull<Mr<W>>) -> Option<Waiter<W>> {
    // SAFETY: The pool keeps the MR, by this function's contract.
    let posted = unsafe { last.as_ref() }.take_posted()?;
    // SAFETY: The QP is in the error state.
    Some(unsafe { posted.end(false) })
}

impl<W> Posted<W> {
    /// Unmaps the MRs. If they are `invalid`, they are idle then; if not, they are not used again.
    /// Returns what has waited for that.
    ///
    /// # Safety
    ///
    /// All of them are invalid if `invalid` is set; if not, their QP is in the error state. A
    /// reference to their endpoint is in use.
    #[inline]
    unsafe fn end(self, invalid: bool) -> Waiter<W> {
        let mut next = Some(self.first);
        while let Some(mut mr) = next {
            next = mr.own_mut().next.take();
            // SAFETY: By this function's contract.
            unsafe { mr.unmap() };
            if invalid {
                mr.into_idle();
            }
        }
        self.waiter
    }
}

/// A LOCAL_INV that [`post_inv`] has posted, not the last of its chain. Its completion is reported
/// only if it failed, and then the last one fails as well.
enum PassedInv {}

impl<C: Exposes> OnCompletion<C> for PassedInv {
    type Queue = SendCq;

    unsafe fn completed(
        worker: &SendWorker<'_, C>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    ) {
        // SAFETY: The CQE is that of a LOCAL_INV, whose MR stays until the queues are drained.
        let id = unsafe { Mr::<WaitingFor<C>>::of_inv_cqe(cqe) }.id();
        trace!(xprtrdma_wc_li(
            worker.send_cid(id as i32),
            wc.status,
            wc.vendor_err
        ));
    }
}

/// The last LOCAL_INV of a chain that [`post_inv`] has posted. When it completes, all have.
enum LastInv {}

impl<C: Exposes> OnCompletion<C> for LastInv {
    type Queue = SendCq;

    #[inline]
    unsafe fn completed(
        worker: &SendWorker<'_, C>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    ) {
        // SAFETY: The CQE is that of a LOCAL_INV, whose MR stays until the queues are drained.
        let last = unsafe { Mr::<WaitingFor<C>>::of_inv_cqe(cqe) };
        trace!(xprtrdma_wc_li_done(
            worker.send_cid(last.id() as i32),
            wc.status,
            wc.vendor_err
        ));
        // None if the post has failed all the same.
        let Some(posted) = last.take_posted() else {
            return;
        };
        let status = WcStatus::of(wc.status);
        if let WcStatus::Error(_) = status {
            // The completion may come before the QP has entered the error state.
            worker.set_qp_error();
        }
        let succeeded = status == WcStatus::Success;
        // SAFETY: If the last LOCAL_INV succeeded, so have those before it. If not, the QP is in
        // the error state: only then does it flush.
        match unsafe { posted.end(succeeded) } {
            Waiter::Task(task) => task.wake(succeeded),
            Waiter::Token(Waiting { owner, token }) => {
                // SAFETY: All MRs of the owner are unmapped, and have been invalidated, or the QP
                // is in the error state.
                let owner = unsafe { fenced_if(succeeded, owner) };
                C::invalidated(worker, owner, token);
            }
        }
    }
}
