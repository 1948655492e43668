// SPDX-License-Identifier: GPL-2.0

//! Callbacks of a server's endpoint: CM events, completions, device removal.
//!
//! C: svc_rdma_transport.c, svc_rdma_cma_handler(), qp_event_handler()
//! C: svc_rdma_recvfrom.c, svc_rdma_wc_receive()
//! C: svc_rdma_rw.c, svc_rdma_wc_read_done()
//! C: svc_rdma_sendto.c, svc_rdma_wc_send()

use kernel::prelude::*;

use super::{
    call::{
        Buffer,
        Call, //
    },
    ep::ServerEp,
    exposed::Token,
    post,
    read_admission,
    release,
    state,
    tunables, //
};
use crate::{
    lib::{
        close_reason::CloseReason,
        counter::Gauge,
        fence::{
            Fenced,
            Unreachable, //
        }, //
    },
    trace::trace,
    verbs::{
        CallReadDone,
        CmEvent,
        Drained,
        Endpoint,
        EndpointOps,
        Exposes,
        Exposure,
        RecvCtxt,
        RecvStatus,
        RecvWorker,
        ReplySender,
        Responder,
        RwCtxtPool,
        RwOps,
        SendWorker,
        Sent,
        SentExposing,
        WcStatus, //
    }, //
};

/// The completion handler itself releases the pages of a Send that has at most this many. More
/// would delay the completions behind it, and are left to an nfsd thread.
const FEW_PAGES: usize = 4;

impl EndpointOps for ServerEp {
    type RecvData = RecvCtxt<Call>;
    type SendSide = ReplySender<Call>;

    fn buffers() -> &'static Gauge {
        &tunables::MESSAGE_BYTES
    }

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        let ctx = ep.context();
        match event {
            CmEvent::Established { .. } => ctx.set_established(),
            CmEvent::Disconnected => ctx.end(CloseReason::PeerDisconnected),
            CmEvent::ConnectError | CmEvent::Unreachable | CmEvent::Rejected { .. } => {
                ctx.end(CloseReason::NotEstablished);
            }
            CmEvent::DeviceRemoval => ctx.remove(),
            _ => {}
        }
    }

    fn qp_fatal(ep: &Endpoint<Self>, code: u32) {
        if let Some(device) = ep.device_name() {
            trace!(svcrdma_qp_error(code, &device, ep.peer_addr()));
        }
        // This may be hard IRQ context.
        ep.context().close(CloseReason::QueuePairError);
    }

    fn device_removed(ep: &Endpoint<Self>) {
        if let Some(device) = ep.device_name() {
            trace!(svcrdma_device_removal(&device, ep.peer_addr()));
        }
        ep.context().remove();
    }

    #[inline]
    fn trace_received(ep: &Endpoint<Self>, serial: i32, status: &RecvStatus, vendor_err: u32) {
        match status {
            RecvStatus::Received { len, .. } => {
                trace!(svcrdma_wc_recv(ep.recv_cid(serial), *len as u32));
            }
            RecvStatus::Flushed => trace!(svcrdma_wc_recv_flush(
                ep.recv_cid(serial),
                status.code(),
                vendor_err
            )),
            RecvStatus::Failed(code) => {
                trace!(svcrdma_wc_recv_err(ep.recv_cid(serial), *code, vendor_err));
            }
        }
    }

    #[inline]
    fn received(worker: &RecvWorker<'_, Self>, mut buffer: Buffer, status: RecvStatus) {
        let ctx = worker.context();
        let posted = ctx.recv_queue.completed();
        let RecvStatus::Received { len, invalidated } = status else {
            ctx.recv_queue.put(buffer);
            ctx.close(status.close_reason());
            return;
        };
        // Without Receives the connection is lost, and the client sends its Calls again on another
        // connection. This Call must then not be executed here as well.
        if ctx.is_closing() {
            ctx.recv_queue.put(buffer);
            ctx.close(CloseReason::Flushed);
            return;
        }
        if let Err(error) = ctx.recv_queue.refill(worker, posted) {
            ctx.recv_queue.put(buffer);
            ctx.close(match error {
                ENOSPC => CloseReason::Flooded,
                _ => CloseReason::PostFailed,
            });
            return;
        }
        let counters = &ctx.counters.receive;
        counters.messages.add(1);
        counters.bytes.add(len as u64);
        ctx.recv_queue.arrived(&buffer);
        let message = counters.messages.get();
        let call = &mut buffer.user_mut().call;
        call.message = message;
        call.len = len;
        call.invalidated = invalidated.map(|handle| ctx.exposed.note_invalidated(handle));
        let mut incoming = ctx.incoming.lock();
        incoming.fresh.push(buffer);
        if !ctx.wake_for(incoming) {
            worker.notify_established();
        }
    }

    fn drained(ep: &Drained<'_, Self>) {
        let ctx = ep.context();
        ctx.timer.cancel();
        ctx.clear_finished(ep);
        post::release_waiting(ep);
        loop {
            let next = ctx.incoming.lock().read_done.pop();
            match next {
                Some(read) => drop(read.finish(ep)),
                None => break,
            }
        }
        ep.release_stranded();
        state::note_end(ep);
    }
}

impl RwOps for ServerEp {
    #[inline]
    fn rw_ctxts(ep: &Endpoint<Self>) -> &RwCtxtPool {
        ep.sender().rw_ctxts()
    }
}

impl Responder for ServerEp {
    type Call = Call;

    fn write_failed(worker: &SendWorker<'_, Self>, status: WcStatus) {
        // The client lacks a part of the Reply.
        worker.context().close(status.into());
    }

    #[inline]
    fn sent(worker: &SendWorker<'_, Self>, sent: Sent, status: WcStatus) {
        let ctx = worker.context();
        let counters = &ctx.counters.send;
        counters.inline_bytes.add(sent.len());
        match sent.written() {
            0 => counters.inline.add(1),
            bytes => {
                counters.written.add(1);
                counters.written_bytes.add(u64::from(bytes));
            }
        }
        // While chains wait for the Send Queue, no thread comes to release pages.
        if sent.pages() <= FEW_PAGES || !ctx.send_backlog.is_empty() {
            worker.sender().put_sent(worker, sent);
        } else if ctx.finished.push(sent) {
            // The list was empty. Without this wakeup its pages might wait for a long time.
            ctx.wake_to_release();
        }
        made_room(worker, status);
    }

    fn sent_exposing(
        worker: &SendWorker<'_, Self>,
        sent: SentExposing,
        slot: usize,
        status: WcStatus,
    ) {
        let counters = &worker.context().counters.send;
        counters.exposed.add(1);
        counters.inline_bytes.add(sent.len());
        release::sent(worker, slot, sent);
        made_room(worker, status);
    }

    fn read_done(worker: &SendWorker<'_, Self>, read: CallReadDone<Call>, status: WcStatus) {
        let ctx = worker.context();
        if status != WcStatus::Success {
            // The Call is incomplete; the client has to send it again.
            ctx.close(status.into());
            if let Some(mut buffer) = read.finish(worker) {
                read_admission::end(ctx, &mut buffer.user_mut().call);
                ctx.recv_queue.put(buffer);
            }
            return;
        }
        let counters = &ctx.counters.send;
        counters.reads.add(1);
        counters.read_bytes.add(u64::from(read.bytes()));
        let mut incoming = ctx.incoming.lock();
        incoming.read_done.push(read);
        ctx.wake_for(incoming);
        made_room(worker, status);
    }
}

/// Handles a chain that has completed with `status` and has released its Send Queue entries.
#[inline]
fn made_room(worker: &SendWorker<'_, ServerEp>, status: WcStatus) {
    let ctx = worker.context();
    if status != WcStatus::Success {
        ctx.close(status.into());
    } else if !ctx.send_backlog.is_empty() {
        post::post_waiting(worker);
    }
}

impl Exposes for ServerEp {
    type Owner = Exposure;
    type Token = Token;

    fn invalidated(
        worker: &SendWorker<'_, Self>,
        pages: Result<Fenced<Exposure>, Unreachable<Exposure>>,
        slot: Token,
    ) {
        match pages {
            Ok(fenced) => release::invalidated(worker, slot, fenced),
            // The table frees the Reply when the queue pair is destroyed.
            Err(_) => worker.context().close(CloseReason::NotInvalidated),
        }
    }

    fn not_registered(worker: &SendWorker<'_, Self>, status: WcStatus) {
        worker.context().close(status.into());
    }
}
