// SPDX-License-Identifier: GPL-2.0

//! Fencing: nobody may look at memory, or give it away, while the peer can reach it (RFC 8166
//! Section 4.4.1).

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    prelude::*,
    sync::SpinLockGuard, //
};

use crate::{
    bindings,
    trace::trace,
    verbs::{
        endpoint::{
            bad_wr::BadWr,
            completion::{
                SendWorker, //
                WcStatus,
            },
            ep::Endpoint,
            ops::EndpointOps, //
        },
        responder::expose::Exposes, //
    }, //
};

use super::{
    frwr::Mr,
    mr_list::{
        MrList,
        Registered, //
    },
    mr_pool, //
};

/// Proof that what an RPC exposed is out of the peer's reach and unmapped. An RPC cannot be
/// completed without.
#[must_use]
pub(crate) struct Fenced(());

impl Fenced {
    #[inline]
    pub(in crate::verbs) fn nothing_exposed() -> Self {
        Self(())
    }
}

/// The queue pair has ended before regions could be invalidated. The peer reaches nothing through
/// it any more, and the regions are unmapped and never used again; but what arrived last cannot be
/// trusted.
#[derive(Clone, Copy)]
pub(crate) struct QpEnded(());

impl QpEnded {
    /// Puts the queue pair into the state from which it answers nobody.
    #[cold]
    fn end<C: Exposes>(ep: &Endpoint<C>) -> Self {
        ep.set_qp_error();
        Self(())
    }

    /// The end of the queue pair is a fence, too: for whoever gives up an RPC, not for whoever
    /// completes it.
    pub(crate) fn fence(self) -> Fenced {
        Fenced(())
    }
}

impl<C: EndpointOps> Endpoint<C> {
    /// Whether a region that the peer has invalidated is invalid. On iWARP it may invalidate one
    /// that is not valid yet, and the registration follows.
    #[inline]
    pub(in crate::verbs) fn invalidates_in_order(&self) -> bool {
        !self.registers_to_read()
    }

    /// Publishing regions and posting their registrations is one critical section.
    ///
    /// A hostile peer may answer before the post; a LOCAL_INV ahead of its REG_MR would leave the
    /// MR valid while its pages are reused. So an invalidation takes this lock before it is posted.
    /// Innermost but for what the regions are kept in.
    #[inline]
    pub(in crate::verbs) fn exposing(&self) -> SpinLockGuard<'_, ()> {
        self.exposing.lock()
    }
}

impl<U: Send + 'static> MrList<Registered, U> {
    /// Invalidates the regions. When that is done, or the queue pair has ended, `token` comes back
    /// in [`Exposes::invalidated`].
    ///
    /// Posts one chain of which only the last is signalled: work requests of one queue end in
    /// order. May be called by whoever has the regions; needs no lock.
    ///
    /// # Errors
    ///
    /// The token comes back if the chain could not be posted. The queue pair has been ended then,
    /// for which this may sleep.
    #[inline]
    pub(crate) fn invalidate<C: Exposes<Token = U>>(
        self,
        ep: &Endpoint<C>,
        token: U,
    ) -> Result<(), (Error, U, QpEnded)> {
        if !self.pd().is_some_and(|pd| ep.owns(pd)) {
            return Err((EINVAL, token, QpEnded::end(ep)));
        }
        // The endpoint keeps the pool until its queues are drained.
        let Some((first, last)) = self.into_chain() else {
            return Err((EINVAL, token, QpEnded::end(ep)));
        };
        // SAFETY: The chain is ours.
        for mr in unsafe { Mr::chain_from(Some(first)) } {
            let p = mr.as_ptr();
            // SAFETY: As above.
            unsafe {
                (*p).inv.next = match (*p).next() {
                    Some(after) => &raw mut (*after.as_ptr()).inv,
                    None => ptr::null_mut(),
                };
                (*p).inv.send_flags = 0;
                *(*p).inv.ex.invalidate_rkey.as_mut() = (*p).handle();
                (*p).inv_cqe.done = Some(passed::<C>);
            }
        }
        // Whoever has posted the registrations is done with it.
        drop(ep.exposing());
        // SAFETY: The chain is ours; what it refers to is part of the regions, which the pool, and
        // so the endpoint, keeps until the queues are drained.
        unsafe {
            let p = last.as_ptr();
            (*p).inv.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
            (*p).inv_cqe.done = Some(invalidated::<C>);
            (*p).chain = Some(first);
            (*p).token.write(token);
            match ep.post_send_raw(&raw const (*first.as_ptr()).inv) {
                Ok(()) => Ok(()),
                // If it has been posted, the token comes back with its completion; if it has not,
                // with nobody.
                Err((_, BadWr::Unknown)) => {
                    ep.set_qp_error();
                    Ok(())
                }
                // The last has not been posted, so that the token is still ours. Those before it
                // may have been: their work requests stay in place, only the memory is let go,
                // which nobody reaches once the queue pair has ended.
                Err((error, _)) => {
                    let token = (*p).token.assume_init_read();
                    let ended = QpEnded::end(ep);
                    mr_pool::retire(first);
                    Err((error, token, ended))
                }
            }
        }
    }
}

/// The end of an invalidation that is not the last of its chain: only reported if it failed, and
/// then the last has failed as well.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a region whose invalidation
/// [`MrList::invalidate`] posted there.
unsafe extern "C" fn passed<C: Exposes>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The `cqe` is in a region, which stays in its chain until the last one has ended.
    let id = unsafe { (*kernel::container_of!(cqe, Mr<C::Token>, inv_cqe)).id() };
    trace!(xprtrdma_wc_li(
        worker.send_cid(id.cast_signed()),
        wc.status,
        wc.vendor_err
    ));
}

/// The end of the last invalidation of a chain, and so of all.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a region whose invalidation
/// [`MrList::invalidate`] posted there.
unsafe extern "C" fn invalidated<C: Exposes>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The `cqe` is in a region; the device gives its chain, and with it the token, back to
    // us.
    let (id, first, token) = unsafe {
        let last = kernel::container_of!(cqe, Mr<C::Token>, inv_cqe);
        (
            (*last).id(),
            (*last).chain.unwrap_or(NonNull::new_unchecked(last)),
            (*last).token.assume_init_read(),
        )
    };
    trace!(xprtrdma_wc_li_done(
        worker.send_cid(id.cast_signed()),
        wc.status,
        wc.vendor_err
    ));
    let how = match WcStatus::of(wc.status) {
        WcStatus::Success => {
            // SAFETY: All are invalid, and the pool is there while the endpoint is.
            unsafe { mr_pool::reclaim(first) };
            Ok(Fenced(()))
        }
        WcStatus::Flushed | WcStatus::Error(_) => {
            // SAFETY: The completion says that the queue pair has ended; the chain is ours, and the
            // pool is there while the endpoint is.
            unsafe { mr_pool::retire(first) };
            Err(QpEnded(()))
        }
    };
    C::invalidated(&worker, token, how);
}
