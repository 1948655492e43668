// SPDX-License-Identifier: GPL-2.0

//! Posting a message, and its completion.
//!
//! C: svc_rdma_sendto.c, svc_rdma_post_send(), svc_rdma_wc_send()

use core::ptr;

use kernel::prelude::*;

use crate::{
    bindings,
    lib::{
        fence::Reachable,
        llist_box::LlistBox, //
    },
    trace::trace,
    verbs::{
        endpoint::{
            bad_wr::BadWr,
            completion::{
                SendWorker,
                WcStatus, //
            },
            ep::Endpoint,
            send_queue::{
                Permit,
                PostError, //
            },
            send_wr::{
                set_cqe,
                set_send, //
            }, //
        },
        mr::exposes::Exposes, //
    }, //
};

use super::{
    expose::{
        ExposedPages,
        ExposingSendCtxt,
        Exposure,
        SentExposing, //
    },
    send_ctxt::{
        Inner,
        SendCtxt,
        Sent, //
    },
    sender::Responder, //
};

impl SendCtxt {
    /// Posts the Writes and, behind them, a Send of the first `len` bytes of the buffer and of the
    /// gathered bytes; [`Responder::sent`] follows. The Send invalidates the peer's rkey
    /// `invalidate`.
    ///
    /// # Errors
    ///
    /// [`PostError`]. The connection has to be closed.
    #[inline]
    pub(crate) fn post<C: Responder>(
        mut self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        len: usize,
        invalidate: Option<u32>,
    ) -> Result<(), PostError<Self>> {
        let Some(first) = self.prepare(ep, &permit, len, invalidate) else {
            return Err(PostError::NotPosted(self));
        };
        // SAFETY: Just prepared for this endpoint, and nothing is in front.
        match unsafe { self.post_chain(ep, permit, first) } {
            Ok(()) => Ok(()),
            Err(Unposted::All(ctxt)) => Err(PostError::NotPosted(ctxt)),
            Err(Unposted::Last(ctxt)) => {
                ep.sender().strand(ctxt);
                Err(PostError::PartlyPosted)
            }
            Err(Unposted::Unknown) => Err(PostError::PartlyPosted),
        }
    }

    /// Prepares the chain of Writes and Send; returns its first work request. `None` if message or
    /// Writes are another endpoint's, or the permit is too small.
    // Out of line, message and permit would be in memory.
    #[inline(always)]
    fn prepare<C: Responder>(
        &mut self,
        ep: &Endpoint<C>,
        permit: &Permit<'_>,
        len: usize,
        invalidate: Option<u32>,
    ) -> Option<*mut bindings::ib_send_wr> {
        if !self.is_of(ep) || permit.entries() <= self.0.rw_chain.entries() {
            return None;
        }
        let raw = self.0.as_ptr();
        let inner = &mut *self.0;
        inner.entries = permit.entries();
        inner.buffer.sync_for_device(len);
        // The first SGE is the buffer's.
        let length = inner.buffer.length(len);
        if let Some(first) = inner.sges.first_mut() {
            first.length = length;
        }
        inner.cqe.done = Some(done::<C>);
        inner.write_cqe.done = Some(write_done::<C>);
        let wr = &mut inner.wr;
        wr.next = ptr::null_mut();
        wr.sg_list = inner.sges.as_mut_ptr();
        // CAST: No more than the device's limit.
        wr.num_sge = inner.sges.len() as c_int;
        wr.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED as c_int;
        set_send(wr, invalidate);
        // SAFETY: Parts of a message that is owned.
        let (cqe, wr) = unsafe { (&raw mut (*raw).cqe, &raw mut (*raw).wr) };
        // SAFETY: As above. The member that the RDMA core uses.
        unsafe { *(*wr).__bindgen_anon_1.wr_cqe.as_mut() = cqe };
        // SAFETY: As above.
        let write_cqe = unsafe { &raw mut (*raw).write_cqe };
        // SAFETY: The Send is part of the message, as the chain is, and `write_cqe`.
        let first = unsafe { self.0.rw_chain.link(ep, wr)? };
        // SAFETY: The chain, which ends with the Send, is linked, and not posted.
        unsafe { set_cqe_of_front(first, wr, write_cqe) };
        trace!(svcrdma_post_send(
            ep.send_cid(self.0.serial),
            self.0.sges.len() as u32,
            invalidate.unwrap_or(0)
        ));
        Some(first)
    }

    /// Posts a chain that starts with `first` and ends with the message's own.
    ///
    /// # Safety
    ///
    /// [`Self::prepare`] has returned the message's own chain for this endpoint and permit. What is
    /// in front of it is well formed, and stays in place until the queues are drained.
    #[inline(always)]
    unsafe fn post_chain<C: Responder>(
        self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        first: *mut bindings::ib_send_wr,
    ) -> Result<(), Unposted> {
        let sender = ep.sender();
        let serial = self.0.serial;
        let raw = self.0.into_raw();
        // SAFETY: The chain is well formed, by this function's contract. Its own part belongs to
        // the message, as do SGEs, buffer and pages. The message was given up above: it stays until
        // `done` takes it back, or the code below.
        let Err((error, left)) = (unsafe { permit.post(ep, sender.queue(), first) }) else {
            return Ok(());
        };
        sender.trace_refused(ep, serial, error);
        if left == BadWr::Unknown {
            sender.doubt(raw);
            return Err(Unposted::Unknown);
        }
        // SAFETY: The Send, which is the last of the chain, was not posted: `done` is not called.
        let ctxt = Self(unsafe { LlistBox::from_raw(raw) });
        Err(match left {
            BadWr::First => Unposted::All(ctxt),
            _ => Unposted::Last(ctxt),
        })
    }
}

/// The part of a message's chain that was not posted.
enum Unposted {
    /// All of it.
    All(SendCtxt),
    /// The Send, and perhaps more.
    Last(SendCtxt),
    /// The device does not say. The message comes back with the completion of the Send, or when the
    /// QP is drained.
    Unknown,
}

impl<U: Send + 'static> ExposingSendCtxt<U> {
    /// [`SendCtxt::post`], behind the registrations of the MRs. The Send Queue has entries for
    /// these beside the permit's. `hold` is given the MRs before the peer can know of them; it must
    /// not sleep. [`Responder::sent_exposing`] follows with `slot`.
    ///
    /// # Errors
    ///
    /// [`PostError`]. The connection has to be closed. Once `hold` has the MRs, the message does
    /// not come back.
    pub(crate) fn post<C: Responder + Exposes<Owner = Exposure, Token = U>>(
        mut self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        len: usize,
        invalidate: Option<u32>,
        slot: usize,
        hold: impl FnOnce(ExposedPages<U>),
    ) -> Result<(), PostError<Self>> {
        let own = self.mr_pd().is_some_and(|pd| ep.owns(pd));
        let prepared = self.ctxt_mut().prepare(ep, &permit, len, invalidate);
        let Some(first) = prepared.filter(|_| own) else {
            return Err(PostError::NotPosted(self));
        };
        // SAFETY: The MRs are registered below, and the message is posted.
        let (mrs, ctxt, exposure) = unsafe { self.into_parts(slot) };
        // First of all: the thread that last posted one of these MRs may still be in
        // `ib_post_send()`, and follow the link that the registration changes.
        let exposing = ep.exposing();
        // SAFETY: The MRs are this endpoint's, and the chain is posted there. The message keeps the
        // pages from here on: it is only accessible as a `SentExposing`.
        let (first, registered) = unsafe { mrs.register(first) };
        // SAFETY: These MRs are mapped to the pages of this exposure, and no others are.
        hold(unsafe { Reachable::new(exposure, registered) });
        // SAFETY: Prepared above. The registrations are part of MRs, whose pool the endpoint keeps
        // until its queues are drained.
        let posted = unsafe { ctxt.post_chain(ep, permit, first) };
        drop(exposing);
        posted.map_err(|unposted| {
            if let Unposted::All(ctxt) | Unposted::Last(ctxt) = unposted {
                ep.sender().strand(ctxt);
            }
            PostError::PartlyPosted
        })
    }
}

/// Sets the `cqe` of the work requests from `first` up to `last`, excluding `last`.
///
/// # Safety
///
/// These are linked, and not posted.
#[inline]
unsafe fn set_cqe_of_front(
    first: *mut bindings::ib_send_wr,
    last: *mut bindings::ib_send_wr,
    cqe: *mut bindings::ib_cqe,
) {
    let mut wr = first;
    while wr != last {
        // SAFETY: By this function's contract, `wr` is one of the linked work requests.
        let front = unsafe { &mut *wr };
        set_cqe(front, cqe);
        wr = front.next;
    }
}

/// Completion of a Write that has failed or was flushed: only the Send behind it is signalled.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a work request in front of
/// the Send that [`SendCtxt::post_chain`] posted there.
unsafe extern "C" fn write_done<C: Responder>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The CQE is that of a message whose Send has not completed: completions are in order.
    let serial = unsafe { (*kernel::container_of!(cqe, Inner, write_cqe)).serial };
    let status = WcStatus::of(wc.status);
    match status {
        // Some devices report work requests that are not signalled.
        WcStatus::Success => return,
        WcStatus::Flushed => trace!(svcrdma_wc_write_flush(
            worker.send_cid(serial),
            wc.status,
            wc.vendor_err
        )),
        WcStatus::Error(status) => trace!(svcrdma_wc_write_err(
            worker.send_cid(serial),
            status,
            wc.vendor_err
        )),
    }
    C::write_failed(&worker, status);
}

/// Completion of a Send.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a Send that
/// [`SendCtxt::post_chain`] posted there.
unsafe extern "C" fn done<C: Responder>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The CQE is that of a message that `post_chain` gave up, and this completion comes
    // once.
    let ctxt = SendCtxt(unsafe { LlistBox::from_raw(kernel::container_of!(cqe, Inner, cqe)) });
    let queue = worker.sender().queue();
    queue.complete(ctxt.0.entries);
    let status = WcStatus::of(wc.status);
    match status {
        WcStatus::Success => trace!(svcrdma_wc_send(worker.send_cid(ctxt.serial()))),
        WcStatus::Flushed => trace!(svcrdma_wc_send_flush(
            worker.send_cid(ctxt.serial()),
            wc.status,
            wc.vendor_err
        )),
        WcStatus::Error(status) => trace!(svcrdma_wc_send_err(
            worker.send_cid(ctxt.serial()),
            status,
            wc.vendor_err
        )),
    }
    match ctxt.0.exposing {
        None => C::sent(&worker, Sent(ctxt), status),
        Some(exposing) => {
            C::sent_exposing(&worker, SentExposing::new(ctxt), exposing.slot, status);
        }
    }
}
