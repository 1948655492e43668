// SPDX-License-Identifier: GPL-2.0

//! The transport that SUNRPC calls.

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
    sunrpc::xprt::{
        BackchannelPool,
        BackchannelReply,
        Call,
        Committed,
        ConnectError,
        Credits,
        SendError,
        Transport,
        Types,
        XprtHandle, //
    },
    verbs::{
        Fenced,
        RecvBuf,
        RequestSender, //
    }, //
};

use super::{
    answer::FenceWaiter,
    backchannel,
    connect,
    connection::Connection,
    inflight::Inflight,
    limits::MAX_PAGES,
    send,
    shared::{
        RdmaXprt,
        XprtShared, //
    },
    tunables, //
};

impl Types for RdmaXprt {
    type Connection = Connection;
    type Sender = RequestSender<FenceWaiter>;
    type Inflight = Inflight;
    type Reply = RecvBuf<()>;
    type Fence = Fenced;
}

impl Transport for RdmaXprt {
    const NETIDS: [&'static CStr; 2] = [c"rdma", c"rdma6"];
    const MAX_PAYLOAD: usize = MAX_PAGES as usize * PAGE_SIZE;

    fn slots() -> u32 {
        tunables::slots()
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
        connect::connect(&self.shared)
    }

    fn disconnect(connection: &Connection) {
        connection.ep.context().suppress_disconnect();
        // A task that fences with the link's mutex held must not have to wait for the peer.
        connection.ep.set_qp_error();
    }

    fn inject_disconnect(connection: &Connection) {
        connection.ep.set_qp_error();
    }

    fn send<'a>(
        &self,
        connection: &Connection,
        sender: &mut RequestSender<FenceWaiter>,
        call: Call<'a, Self>,
    ) -> Result<Committed<'a, Self>, SendError> {
        send::call(connection, &self.shared, sender, call)
    }

    fn send_backchannel(
        &self,
        connection: &Connection,
        sender: &mut RequestSender<FenceWaiter>,
        reply: &BackchannelReply<'_, Self>,
    ) -> Result<(), SendError> {
        backchannel::reply(connection, &self.shared, sender, reply)
    }

    fn fence(&self, connection: &Connection, inflight: Inflight) -> Fenced {
        let this = connection.ep.context();
        let mrs = match inflight.mrs.try_fence() {
            Ok(fence) => return fence,
            Err(mrs) => mrs,
        };
        let count = u64::from(mrs.len());
        self.shared.stats.local_invalidations.add(count);
        if let Err((_, _, ended)) = mrs.invalidate(&connection.ep, FenceWaiter::GivenUp) {
            this.force_disconnect();
            return ended.fence();
        }
        let mut fenced = this.fenced.lock();
        loop {
            match fenced.take() {
                Some(fence) => return fence,
                None => this.fence_done.wait(&mut fenced),
            }
        }
    }

    fn recycle(&self, reply: RecvBuf<()>) {
        self.shared.recv_pool.put(reply);
    }

    fn buffers_grown(&self, bytes: usize) {
        self.shared.stats.grown.add(bytes as u64);
    }

    fn backchannel_payload(&self) -> usize {
        self.shared.backchannel_payload.load(Relaxed) as usize
    }

    fn print_stats(&self, seq: &SeqFile) {
        self.shared.stats.print(seq);
    }
}
