// SPDX-License-Identifier: GPL-2.0

//! Calls from SUNRPC to the transport.
//!
//! C: frwr_ops.c, frwr_unmap_sync()

use core::{
    ffi::CStr,
    fmt, //
};

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    seq_file::SeqFile,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    }, //
};

use crate::{
    debugfs::Lines,
    engine::requester::call::CallLimits,
    lib::{
        close_reason::CloseReason,
        fence::{
            Reachable,
            Unreachable, //
        },
        sockaddr::SockAddr, //
    },
    sunrpc::xprt::{
        Abandoned,
        BackchannelPool,
        BackchannelReply,
        Call,
        Committed,
        ConnectError,
        Credits,
        SendError,
        Transport,
        Types,
        XprtHandle,
        XprtStatus, //
    },
    verbs::{
        EndpointBox,
        RecvBuf,
        RequestSender, //
    }, //
};

use super::{
    answer::{
        FenceWaiter,
        RegisteredMrs, //
    },
    backchannel,
    connect,
    ep::ClientEp,
    inflight::Inflight,
    limits::MAX_PAGES,
    send,
    shared::{
        Connection,
        RdmaXprt,
        XprtShared, //
    },
    state,
    tunables, //
};

impl Types for RdmaXprt {
    type Endpoint = EndpointBox<ClientEp>;
    type Limits = CallLimits;
    type Sender = RequestSender<FenceWaiter>;
    type Exposed = RegisteredMrs;
    type Inflight = Inflight;
    type Reply = RecvBuf<()>;
}

impl Transport for RdmaXprt {
    const NETIDS: [&'static CStr; 2] = [c"rdma", c"rdma6"];
    const MAX_PAYLOAD: usize = MAX_PAGES as usize * PAGE_SIZE;

    fn slots() -> u32 {
        tunables::SLOTS.get()
    }

    fn backchannel_slots(&self) -> u32 {
        self.shared.backchannel_calls
    }

    fn new(
        xprt: XprtHandle<Self>,
        credits: Arc<Credits<XprtHandle<Self>>>,
        backchannel: Arc<BackchannelPool<Self>>,
    ) -> Result<Self> {
        Ok(Self {
            shared: XprtShared::new(xprt, credits, backchannel)?,
        })
    }

    fn connect(&self) -> Result<(Connection, RequestSender<FenceWaiter>), ConnectError> {
        let shared = &self.shared;
        shared.history.connecting();
        connect::connect(shared)
            .inspect(|_| {
                shared.history.connected();
                shared.connect_report.succeeded(shared.xprt.peer());
            })
            .inspect_err(|error| {
                let failure = shared.history.failed(*error);
                shared.connect_report.failed(shared.xprt.peer(), failure);
            })
    }

    fn disconnect(conn: &Connection, reason: CloseReason) {
        conn.ep.context().suppress_disconnect(reason);
        // A task may be waiting for LOCAL_INVs with the mutex `link` held. The error state of the
        // QP flushes its WRs, so the task does not wait for the peer.
        conn.ep.set_qp_error();
    }

    fn inject_disconnect(conn: &Connection) {
        conn.ep.context().note_close(CloseReason::Injected);
        conn.ep.set_qp_error();
    }

    fn local_addr(conn: &Connection) -> Option<SockAddr> {
        conn.ep.local_addr()
    }

    fn send<'a>(
        &self,
        conn: &Connection,
        sender: &mut RequestSender<FenceWaiter>,
        call: Call<'a, Self>,
    ) -> Result<Committed<'a, Self>, SendError> {
        send::send_call(conn, &self.shared, sender, call)
    }

    fn send_backchannel(
        &self,
        conn: &Connection,
        sender: &mut RequestSender<FenceWaiter>,
        reply: &BackchannelReply<'_, Self>,
    ) -> Result<(), SendError> {
        backchannel::send_reply(conn, &self.shared, sender, reply)
    }

    fn fence<'a>(
        &self,
        conn: &Connection,
        rpc: Reachable<Abandoned<'a, Self>, RegisteredMrs>,
    ) -> Unreachable<Abandoned<'a, Self>> {
        let rpc = match rpc.try_fence() {
            Ok(fenced) => return fenced.into(),
            Err(rpc) => rpc,
        };
        let count = u64::from(rpc.exposed().len());
        self.shared.stats.local_invalidations.add(count);
        let ctx = conn.ep.context();
        let fenced = rpc.invalidate_and_wait();
        ctx.wake_mr_waiters();
        fenced.map_or_else(
            |unreachable| {
                ctx.force_disconnect(CloseReason::NotInvalidated);
                unreachable
            },
            Unreachable::from,
        )
    }

    fn recycle(&self, reply: RecvBuf<()>) {
        self.shared.recv_pool.put(reply);
    }

    fn count_buffer_growth(&self, bytes: usize) {
        self.shared.stats.grown.add(bytes as u64);
    }

    fn backchannel_payload(&self) -> usize {
        self.shared.backchannel_payload.load(Relaxed) as usize
    }

    fn show(
        &self,
        status: &XprtStatus,
        conn: Option<&Connection>,
        lines: &mut Lines,
    ) -> fmt::Result {
        state::show(&self.shared, status, conn, lines)
    }

    fn print_stats(&self, seq: &SeqFile) {
        self.shared.stats.print(seq);
    }
}
