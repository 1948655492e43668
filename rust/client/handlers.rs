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
    sunrpc::xprt::{
        ConnectError,
        Fencing, //
    },
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
    connect_wait::ConnectProgress,
    dones::ReplyRead,
    ep::ClientEp,
    link_history::ConnectFailure,
    reply,
    reply_read,
    shared::RdmaXprt,
    tunables, //
};

impl EndpointOps for ClientEp {
    type RecvData = ();

    fn buffers() -> &'static Gauge {
        &tunables::MESSAGE_BYTES
    }

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        let ctx = ep.context();
        let (error, failure, reason) = match event {
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
            CmEvent::AddrError { unanswered: false } => (
                ConnectError::Protocol,
                ConnectFailure::NoDevice,
                CloseReason::NotEstablished,
            ),
            CmEvent::RouteError => (
                ConnectError::Unreachable,
                ConnectFailure::NoRoute,
                CloseReason::NotEstablished,
            ),
            // The server does not answer. After ETIMEDOUT, mount(8), which might try another
            // address, would retry for minutes. ENETUNREACH would fail the tasks of a container
            // (fatal_neterrors) each time its server is slow to start.
            CmEvent::AddrError { unanswered: true } => (
                ConnectError::HostUnreachable,
                ConnectFailure::NoNeighbour,
                CloseReason::NotEstablished,
            ),
            // On RoCE this is also the event of a connection whose neighbour entry has another
            // hardware address, or none since one ARP request was lost. An idle connection may be
            // alive. If it is not, the next Call finds out. With Calls outstanding the peer has
            // most likely moved, and retransmissions would take longer than another connection.
            CmEvent::Unreachable if ctx.is_idle() => return,
            CmEvent::Unreachable => (
                ConnectError::PeerMoved,
                ConnectFailure::Unanswered,
                CloseReason::AddressMoved,
            ),
            // The peer still has an old connection. By the next attempt it will have noticed.
            CmEvent::Rejected { stale, reason } => (
                if stale {
                    ConnectError::NotConnected
                } else {
                    ConnectError::Refused
                },
                ConnectFailure::Rejected(reason),
                CloseReason::NotEstablished,
            ),
            CmEvent::ConnectError => (
                ConnectError::NotConnected,
                ConnectFailure::Lost,
                CloseReason::NotEstablished,
            ),
            CmEvent::Disconnected => (
                ConnectError::NotConnected,
                ConnectFailure::Lost,
                CloseReason::PeerDisconnected,
            ),
            CmEvent::AddrChange => (
                ConnectError::NoDevice,
                ConnectFailure::DeviceGone,
                CloseReason::AddressMoved,
            ),
            CmEvent::DeviceRemoval => (
                ConnectError::NoDevice,
                ConnectFailure::DeviceGone,
                CloseReason::DeviceRemoved,
            ),
        };
        ctx.shared.history.report(failure);
        ctx.connect_failed(error, reason);
    }

    // `qp_fatal` is not implemented: it may run in hard IRQ context, where SUNRPC's lock cannot be
    // taken. Posted WRs are flushed after such an event, and the first flushed one closes the
    // connection.

    fn device_removed(ep: &Endpoint<Self>) {
        if let Some(device) = ep.device_name() {
            trace!(xprtrdma_device_removal(&device, ep.peer_addr()));
        }
        let ctx = ep.context();
        ctx.shared.history.report(ConnectFailure::DeviceGone);
        ctx.connect_failed(ConnectError::NoDevice, CloseReason::DeviceRemoved);
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

    fn received(worker: &RecvWorker<'_, Self>, recv: RecvBuf<()>, status: RecvStatus) {
        reply::received(worker, recv, status);
    }

    fn drained(ep: &Drained<'_, Self>) {
        ep.context().reply_reads.drained(ep);
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
            WcStatus::Success => ctx.send_next_dones(worker),
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
        if status != WcStatus::Success {
            worker.context().force_disconnect(status.into());
        }
    }
}

impl ReplyReader for ClientEp {
    type ReplyRead = ReplyRead;

    fn reply_reads(&self) -> &ReplyReads<ReplyRead> {
        &self.reply_reads
    }

    fn read_done(worker: &SendWorker<'_, Self>, read: ReplyRead, status: WcStatus) {
        reply_read::done(worker, read, status);
    }
}
