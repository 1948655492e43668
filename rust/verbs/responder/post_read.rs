// SPDX-License-Identifier: GPL-2.0

//! Posting the RDMA Reads of a Call, and their completion.
//!
//! C: svc_rdma_rw.c, svc_rdma_post_chunk_ctxt(), svc_rdma_wc_read_done()

use core::ptr;

use kernel::{
    prelude::*,
    time::{
        Delta,
        Instant, //
    }, //
};

use crate::{
    bindings,
    trace::{
        svcrdma_wc_read,
        trace, //
    },
    verbs::{
        endpoint::{
            bad_wr::BadWr,
            completion::{
                SendWorker,
                WcStatus, //
            },
            ep::Endpoint,
            recv_ctxt::RecvBuf,
            send_queue::{
                Permit,
                PostError, //
            }, //
        },
        rw::rw_ctxt::{
            DoneArg,
            RwCtxt, //
        }, //
    }, //
};

use super::{
    call_read::{
        CallRead,
        CallReadDone,
        RecvCtxt, //
    },
    sender::Responder, //
};

impl<S: Send + 'static> CallRead<S> {
    /// Posts the Reads; [`Responder::read_done`] follows.
    ///
    /// # Errors
    ///
    /// [`PostError`]. The connection has to be closed.
    #[inline]
    pub(crate) fn post<C: Responder<Call = S>>(
        mut self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
    ) -> Result<(), PostError<Self>> {
        let sender = ep.sender();
        let (serial, context) = (self.0.serial(), self.0.as_raw());
        let entries = permit.entries();
        let arg = DoneArg {
            context,
            entries,
            posted: svcrdma_wc_read::enabled().then(Instant::now),
        };
        let chain = &mut self.0.user_mut().rw_chain;
        chain.set_done(done::<C>, arg);
        let enough = chain.entries() <= entries;
        // SAFETY: Nothing follows the chain.
        let first = unsafe { chain.link(ep, ptr::null_mut()) };
        let Some(first) = first.filter(|first| !first.is_null() && enough) else {
            return Err(PostError::NotPosted(self));
        };
        trace!(svcrdma_post_read_chunk(ep.send_cid(serial), entries as i32));
        let context = self.0.into_raw();
        // SAFETY: The chain is well formed, and prepared for this endpoint's QP. Work requests and
        // pages belong to the buffer, which was given up above: it stays until `done` takes it
        // back, or the code below.
        let Err((error, left)) = (unsafe { permit.post(ep, sender.queue(), first) }) else {
            return Ok(());
        };
        sender.trace_refused(ep, serial, error);
        if left == BadWr::Unknown {
            sender.doubt_read(context);
            return Err(PostError::PartlyPosted);
        }
        // SAFETY: The last Read was not posted, so that `done` is not called.
        let read = Self(unsafe { RecvBuf::from_raw(context) });
        if left == BadWr::First {
            return Err(PostError::NotPosted(read));
        }
        sender.strand_read(CallReadDone(read.0));
        Err(PostError::PartlyPosted)
    }
}

/// Completion of a chain of Reads.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a chain that
/// [`CallRead::post`] posted there.
unsafe extern "C" fn done<C: Responder>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: `post` set this handler for the last Read, which is in the chain until it is
    // released.
    let arg = unsafe { RwCtxt::done_arg(cqe) };
    // SAFETY: `post` gave up the buffer with this pointer, and this completion comes once.
    let recv: RecvBuf<RecvCtxt<C::Call>> = unsafe { RecvBuf::from_raw(arg.context) };
    worker.sender().queue().complete(arg.entries);
    let status = WcStatus::of(wc.status);
    match status {
        WcStatus::Success => trace!(svcrdma_wc_read(
            worker.send_cid(recv.serial()),
            recv.user().rw_chain.bytes(),
            arg.posted
                .map_or(Delta::ZERO, |at| at.elapsed())
                .as_micros_ceil()
        )),
        WcStatus::Flushed => trace!(svcrdma_wc_read_flush(
            worker.send_cid(recv.serial()),
            wc.status,
            wc.vendor_err
        )),
        WcStatus::Error(status) => trace!(svcrdma_wc_read_err(
            worker.send_cid(recv.serial()),
            status,
            wc.vendor_err
        )),
    }
    C::read_done(&worker, CallReadDone(recv), status);
}
