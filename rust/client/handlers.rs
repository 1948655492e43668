// SPDX-License-Identifier: GPL-2.0

//! Callbacks of a client's endpoint: CM events, completions, device removal.
//!
//! C: verbs.c, rpcrdma_cm_event_handler(), rpcrdma_wc_send()

use crate::{
    engine::agreement::{
        Agreement,
        Extensions,
        ReadDepths, //
    },
    lib::{
        close_reason::CloseReason,
        counter::Gauge,
        fence::{
            Fenced,
            Unreachable, //
        }, //
    },
    sunrpc::xprt::Fencing,
    trace::trace,
    verbs::{
        CmEvent,
        Drained,
        Endpoint,
        EndpointOps,
        Exposes,
        RecvBuf,
        RecvStatus,
        RecvWorker,
        ReplyReader,
        ReplyReads,
        Requester,
        SendWorker,
        WcStatus, //
    },
    wire::{
        extensions::Offer,
        private_data::PrivateData, //
    }, //
};

use super::{
    answer::Answer,
    complete,
    connect_failure::ConnectFailure,
    connect_wait::ConnectProgress,
    dones::ReplyRead,
    ep::ClientEp,
    reply,
    reply_read,
    shared::RdmaXprt,
    tunables, //
};

impl EndpointOps for ClientEp {
    type RecvData = ();
    type SendSide = ReplyReads<ReplyRead>;

    fn buffers() -> &'static Gauge {
        &tunables::MESSAGE_BYTES
    }

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        let ctx = ep.context();
        let (failure, reason) = match event {
            CmEvent::AddrResolved | CmEvent::RouteResolved => {
                return ctx.connect_wait.answer(ConnectProgress::Answered);
            }
            CmEvent::Established {
                private_data,
                reads,
            } => {
                let limits = ctx.limits();
                let peer = PrivateData::of_peer(private_data);
                let agreement = Agreement::between(&limits.own, &peer);
                let depths = ReadDepths {
                    initiator_depth: u32::from(limits.read_depth),
                    responder_resources: u32::from(reads),
                };
                let theirs = Offer::of_peer(private_data);
                let extensions = Extensions::between(&limits.offer(), &theirs, &depths);
                let is_sent = PrivateData::find(private_data).is_some();
                return ctx.established(agreement, extensions, is_sent);
            }
            CmEvent::Other => return,
            CmEvent::AddrError { unanswered: false } => {
                (ConnectFailure::NoDevice, CloseReason::NotEstablished)
            }
            CmEvent::RouteError => (ConnectFailure::NoRoute, CloseReason::NotEstablished),
            CmEvent::AddrError { unanswered: true } => {
                (ConnectFailure::NoNeighbour, CloseReason::NotEstablished)
            }
            // siw waits ten seconds for an answer, InfiniBand and RoCE more than `CM_TIMEOUT_MS`.
            CmEvent::Unreachable if !ep.reports_neighbour() => {
                (ConnectFailure::Unanswered, CloseReason::NotEstablished)
            }
            // On RoCE the CM also reports this event if the neighbour entry has another hardware
            // address, or none because an ARP request was lost. An idle connection may be alive; if
            // not, the next Call finds out. With Calls outstanding the peer has most likely moved,
            // and a new connection takes less time than retransmissions.
            CmEvent::Unreachable if ctx.is_idle() => return,
            CmEvent::Unreachable => (ConnectFailure::PeerMoved, CloseReason::PeerMoved),
            CmEvent::Rejected { stale: true, .. } => {
                (ConnectFailure::Stale, CloseReason::NotEstablished)
            }
            CmEvent::Rejected { reason, .. } => (
                ConnectFailure::Rejected(reason),
                CloseReason::NotEstablished,
            ),
            CmEvent::ConnectError => (ConnectFailure::Lost, CloseReason::NotEstablished),
            CmEvent::Disconnected => (ConnectFailure::Lost, CloseReason::PeerDisconnected),
            CmEvent::AddrChange => (ConnectFailure::DeviceGone, CloseReason::AddressMoved),
            CmEvent::DeviceRemoval => (ConnectFailure::DeviceGone, CloseReason::DeviceRemoved),
        };
        ctx.connect_failed(failure, reason);
    }

    // `qp_fatal` is not implemented: it may run in hard IRQ context, where SUNRPC's lock cannot be
    // taken. Posted WRs are flushed after such an event, and the first flushed one closes the
    // connection.

    fn device_removed(ep: &Endpoint<Self>) {
        if let Some(device) = ep.device_name() {
            trace!(xprtrdma_device_removal(&device, ep.peer_addr()));
        }
        let ctx = ep.context();
        ctx.connect_failed(ConnectFailure::DeviceGone, CloseReason::DeviceRemoved);
    }

    #[inline]
    fn trace_received(ep: &Endpoint<Self>, serial: i32, status: &RecvStatus, vendor_err: u32) {
        let len = match status {
            RecvStatus::Received { len, .. } => *len as u32,
            _ => 0,
        };
        trace!(xprtrdma_wc_receive(
            ep.recv_cid(serial),
            status.code(),
            vendor_err,
            len
        ));
    }

    #[inline(always)]
    fn received(worker: &RecvWorker<'_, Self>, recv: RecvBuf<()>, status: RecvStatus) {
        reply::received(worker, recv, status);
    }

    fn drained(ep: &Drained<'_, Self>) {
        ep.drop_reply_reads();
        // The idle buffers are mapped for this connection's device.
        ep.context().shared.recv_pool.close();
    }
}

impl Requester for ClientEp {
    fn sent(worker: &SendWorker<'_, Self>, status: WcStatus) {
        let ctx = worker.context();
        ctx.shared.xprt.write_space();
        if status != WcStatus::Success {
            ctx.force_disconnect(status.into());
        }
    }

    fn ctrl_sent(worker: &SendWorker<'_, Self>, status: WcStatus) {
        let ctx = worker.context();
        match status {
            WcStatus::Success => ctx.send_queued(worker),
            _ => ctx.force_disconnect(status.into()),
        }
    }
}

impl Exposes for ClientEp {
    type Owner = Fencing<RdmaXprt>;
    type Token = Answer;

    fn invalidated(
        worker: &SendWorker<'_, Self>,
        rpc: Result<Fenced<Fencing<RdmaXprt>>, Unreachable<Fencing<RdmaXprt>>>,
        answer: Answer,
    ) {
        complete::invalidated(worker, rpc, answer);
    }

    fn not_registered(worker: &SendWorker<'_, Self>, status: WcStatus) {
        worker.context().force_disconnect(status.into());
    }
}

impl ReplyReader for ClientEp {
    type ReplyRead = ReplyRead;

    fn read_done(worker: &SendWorker<'_, Self>, read: ReplyRead, status: WcStatus) {
        reply_read::done(worker, read, status);
    }
}
