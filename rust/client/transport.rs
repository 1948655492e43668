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
        Call,
        Committed,
        ConnectError,
        Credits,
        ReversePool,
        ReverseReply,
        SendError,
        Transport,
        XprtHandle, //
    },
    verbs::{
        Fenced,
        Recv,
        Sender, //
    }, //
};

use super::{
    backchannel,
    complete::FenceWaiter,
    connect,
    connection::Connection,
    inflight::Exchange,
    limits::MAX_PAGES,
    send,
    shared::Shared,
    tunables, //
};

/// RPC-over-RDMA, the connecting end.
pub(super) struct Rdma {
    shared: Arc<Shared>,
}

impl Transport for Rdma {
    type Connection = Connection;
    type Sender = Sender<FenceWaiter>;
    type Exchange = Exchange;
    type Reply = Recv<()>;
    type Fence = Fenced;

    const NETIDS: [&'static CStr; 2] = [c"rdma", c"rdma6"];
    const MAX_PAYLOAD: usize = MAX_PAGES as usize * PAGE_SIZE;

    fn slots() -> u32 {
        tunables::slots()
    }

    fn reverse_slots(&self) -> u32 {
        self.shared.reverse_calls
    }

    fn new(
        xprt: XprtHandle<Self>,
        credits: Arc<Credits<XprtHandle<Self>>>,
        reverse: Arc<ReversePool<Self>>,
    ) -> Result<Self> {
        Ok(Self {
            shared: Shared::new(xprt, credits, reverse)?,
        })
    }

    fn connect(&self) -> Result<(Connection, Sender<FenceWaiter>), ConnectError> {
        connect::connect(&self.shared)
    }

    fn hang_up(connection: &Connection) {
        connection.ep.context().expect_end();
        // A task that fences with the link's mutex held must not have to wait for the peer.
        connection.ep.break_off();
    }

    fn inject_disconnect(connection: &Connection) {
        connection.ep.break_off();
    }

    fn send<'a>(
        &self,
        connection: &Connection,
        sender: &mut Sender<FenceWaiter>,
        call: Call<'a, Self>,
    ) -> Result<Committed<'a, Self>, SendError> {
        send::call(connection, &self.shared, sender, call)
    }

    fn send_reverse(
        &self,
        connection: &Connection,
        sender: &mut Sender<FenceWaiter>,
        reply: &ReverseReply<'_, Self>,
    ) -> Result<(), SendError> {
        backchannel::reply(connection, &self.shared, sender, reply)
    }

    fn fence(&self, connection: &Connection, exchange: Exchange) -> Fenced {
        let this = connection.ep.context();
        let regions = match exchange.regions.try_fence() {
            Ok(fence) => return fence,
            Err(regions) => regions,
        };
        let count = u64::from(regions.len());
        self.shared.stats.local_invalidations.add(count);
        if let Err((_, _, ended)) = regions.invalidate(&connection.ep, FenceWaiter::GivenUp) {
            this.lose();
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

    fn recycle(&self, reply: Recv<()>) {
        self.shared.recv_pool.put(reply);
    }

    fn buffers_grown(&self, octets: usize) {
        self.shared.stats.grown.add(octets as u64);
    }

    fn reverse_payload(&self) -> usize {
        self.shared.reverse_payload.load(Relaxed) as usize
    }

    fn print_stats(&self, seq: &SeqFile) {
        self.shared.stats.print(seq);
    }
}
