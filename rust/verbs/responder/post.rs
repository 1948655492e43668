// SPDX-License-Identifier: GPL-2.0

//! Posting a message, and its end.

use core::ptr;

use kernel::prelude::*;

use crate::{
    bindings,
    lib::llist_box::LlistBox,
    trace::trace,
    verbs::endpoint::{
        bad_wr::BadWr,
        completion::{
            SendWorker, //
            WcStatus,
        },
        ep::Endpoint,
        send_queue::{
            Permit, //
            PostError,
        },
        send_wr::set_send, //
    }, //
};

use super::{
    send_ctxt::{
        Inner,
        SendCtxt,
        Sent, //
    },
    sender::Responder, //
};

impl SendCtxt {
    /// Posts the Writes and, behind them, a Send of the first `bytes` of the buffer and what was
    /// gathered; [`Responder::sent`] follows. The Send invalidates the peer's handle `invalidate`.
    ///
    /// # Errors
    ///
    /// [`PostError`]; either way the connection is at its end.
    #[inline]
    pub(crate) fn post<C: Responder>(
        self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        bytes: usize,
        invalidate: Option<u32>,
    ) -> Result<(), PostError<Self>> {
        // SAFETY: Nothing is put in front.
        unsafe { self.post_behind(ep, permit, bytes, invalidate, |first| first) }
    }

    /// [`Self::post`], with what `before` puts in front of the chain, for which there are entries
    /// of the Send Queue beside the permit's.
    ///
    /// # Errors
    ///
    /// As for [`Self::post`].
    ///
    /// # Safety
    ///
    /// `before` returns the start of a chain that ends with its argument. What it puts in front
    /// stays in place until the queues are drained.
    #[inline]
    pub(in crate::verbs) unsafe fn post_behind<C: Responder>(
        mut self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        bytes: usize,
        invalidate: Option<u32>,
        before: impl FnOnce(*mut bindings::ib_send_wr) -> *mut bindings::ib_send_wr,
    ) -> Result<(), PostError<Self>> {
        if !ep.owns(self.0.buffer.pd()) {
            return Err(PostError::NotPosted(self));
        }
        let raw = self.0.as_ptr();
        let inner = &mut *self.0;
        inner.buffer.sync_for_device(bytes);
        // The first element is the buffer's.
        let length = inner.buffer.length(bytes);
        if let Some(first) = inner.sges.first_mut() {
            first.length = length;
        }
        inner.cqe.done = Some(done::<C>);
        let wr = &mut inner.wr;
        wr.next = ptr::null_mut();
        // SAFETY: A member of a valid object.
        *unsafe { wr.__bindgen_anon_1.wr_cqe.as_mut() } = unsafe { &raw mut (*raw).cqe };
        wr.sg_list = inner.sges.as_mut_ptr();
        // CAST: As many as the device has, at most.
        wr.num_sge = inner.sges.len() as c_int;
        wr.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED as c_int;
        set_send(wr, invalidate);
        // SAFETY: The Send is part of the message, and stays as long as its transfers.
        let first = unsafe { inner.rw_chain.link(ep, &raw mut (*raw).wr) };
        let Some(first) = first.filter(|_| permit.entries() > inner.rw_chain.entries()) else {
            return Err(PostError::NotPosted(self));
        };
        inner.entries = permit.entries();
        // Afterwards the message may be somebody else's.
        let (serial, elements) = (inner.serial, inner.sges.len());
        trace!(svcrdma_post_send(
            ep.send_cid(serial),
            elements as u32,
            invalidate.unwrap_or(0)
        ));
        let raw = self.0.into_raw();
        let first = before(first);
        // SAFETY: Work requests, elements, buffer and pages belong to the message, which nobody can
        // reach until `done` takes it back, or the code below.
        match unsafe { permit.post(ep, first) } {
            Ok(()) => Ok(()),
            Err((error, left)) => {
                let sender = ep.context().sender();
                sender.trace_refused(ep, serial, error);
                if left == BadWr::Unknown {
                    return Err(PostError::PartlyPosted);
                }
                // SAFETY: The Send is the last of the chain, so it is not posted, and `done` does
                // not come.
                let message = Self(unsafe { LlistBox::from_raw(raw) });
                if left == BadWr::First {
                    return Err(PostError::NotPosted(message));
                }
                sender.strand_message(Sent(message));
                Err(PostError::PartlyPosted)
            }
        }
    }
}

/// The end of a Send, in the send completion queue's worker.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a Send that
/// [`SendCtxt::post`] posted there.
unsafe extern "C" fn done<C: Responder>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: Every Send is posted with the `cqe` of its message; its completion comes once.
    let message = SendCtxt(unsafe { LlistBox::from_raw(kernel::container_of!(cqe, Inner, cqe)) });
    worker
        .context()
        .sender()
        .queue()
        .complete(message.0.entries);
    let how = WcStatus::of(wc.status);
    match how {
        WcStatus::Success => trace!(svcrdma_wc_send(worker.send_cid(message.serial()))),
        WcStatus::Flushed => trace!(svcrdma_wc_send_flush(
            worker.send_cid(message.serial()),
            wc.status,
            wc.vendor_err
        )),
        WcStatus::Error(status) => trace!(svcrdma_wc_send_err(
            worker.send_cid(message.serial()),
            status,
            wc.vendor_err
        )),
    }
    C::sent(&worker, Sent(message), how);
}
