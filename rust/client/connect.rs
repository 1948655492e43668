// SPDX-License-Identifier: GPL-2.0

//! Making a connection, step by step. Runs in the connect worker, with the send lock.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    engine::credit,
    sunrpc::xprt::ConnectError,
    trace::trace,
    verbs::{
        ConnParam,
        CtrlSendPool,
        Endpoint,
        MrRefresh,
        RequestSender, //
    },
    wire::{
        extensions::Announcement,
        MIN_LEN, //
    }, //
};

use super::{
    answer::FenceWaiter,
    connect_wait::ConnectProgress,
    connection::Connection,
    ep::ClientEp,
    limits::{
        Limits,
        Unsupported,
        DONES, //
    },
    shared::{
        MrWaiters,
        XprtShared, //
    }, //
};

/// How long to look for the device, and for the route.
const RESOLVE_MS: u32 = 5_000;
/// How much longer to wait for the answer: it comes, in time or as an error.
const SLACK_MS: u32 = 1_000;
/// How long to wait for the peer. The connection manager gives up earlier, after 74 seconds on
/// RoCE, unless the peer has asked for patience. A server that was restarted does so while it
/// accepts thousands of clients, one after the other. Those that gave up would ask again, behind
/// the others, while it still makes connections for the requests that are dead.
const CONNECT_MS: u32 = 180_000;

/// How often the device tries to send a message that is not acknowledged. A lost path is noticed
/// soon; SUNRPC sends again on the next connection.
const RETRIES: u8 = 6;
/// How often it tries if the peer has no Receive. Credits see to it that there is one.
const RECEIVER_RETRIES: u8 = 0;

/// Connects to the transport's peer.
///
/// # Errors
///
/// See [`ConnectError`]; what was made is dropped again.
pub(super) fn connect(
    shared: &Arc<XprtShared>,
) -> Result<(Connection, RequestSender<FenceWaiter>), ConnectError> {
    let (Some(net), Some(peer)) = (shared.xprt.net(), shared.xprt.peer()) else {
        return Err(ConnectError::Protocol);
    };
    let ep = Endpoint::create(net, ClientEp::new(shared.clone()))?;
    let this = ep.context();
    let timeout = RESOLVE_MS as usize;
    let most = RESOLVE_MS + SLACK_MS;
    let is_wanted = || shared.xprt.is_wanted();
    this.connect_wait
        .ask(|| ep.resolve_addr(&peer, timeout), most, is_wanted)?;
    this.connect_wait
        .ask(|| ep.resolve_route(timeout), most, is_wanted)?;

    let device = ep.device()?;
    let mut limits = Limits::for_device(&device, shared.xprt.slots(), shared.backchannel_calls)
        .map_err(|unsupported| unsuitable(&ep, unsupported))?;
    open_queues(&ep, &mut limits)?;
    let sender = make_sender(&ep, shared, &mut limits)?;
    this.set_limits(limits);

    // One Call may be sent, until its Reply says more (RFC 8166 Section 3.3.3); and the peer may
    // call.
    shared.xprt.set_window(1);
    if limits.read_depth > 0 {
        this.reply_reads.open(limits.reply_read_entries);
        this.open_dones(&ep, DONES, limits.requests)?;
    }
    let first = limits.first_receives();
    if this.post_receives(&ep, first) < first {
        return Err(ConnectError::NoMemory);
    }

    let announcement = Announcement::new(&limits.own, &limits.offer());
    let param = ConnParam {
        responder_resources: u8::try_from(device.max_qp_rd_atom).unwrap_or(u8::MAX),
        // We read from the peer only to pull Replies.
        initiator_depth: limits.read_depth,
        retry_count: RETRIES,
        rnr_retry_count: RECEIVER_RETRIES,
        private_data: announcement.as_bytes(),
    };
    let answer = this
        .connect_wait
        .ask(|| ep.connect(&param), CONNECT_MS, is_wanted)?;
    match answer {
        ConnectProgress::Established(agreement, extensions) => {
            shared.agreed(limits.backchannel_payload(&agreement));
            let limits = limits.call_limits(&agreement, &extensions);
            trace!(xprtrdma_inline_thresh(
                ep.local_addr(),
                ep.peer_addr(),
                agreement.send,
                agreement.receive,
                agreement.send - MIN_LEN as u32,
                agreement.receive - MIN_LEN as u32
            ));
            Ok((Connection { ep, limits }, sender))
        }
        _ => Err(ConnectError::NotConnected),
    }
}

/// Makes the queues, for fewer Calls if it has to be: how deep a queue can be depends on how large
/// its entries are, too, and how that is, only the device knows.
fn open_queues(ep: &Endpoint<ClientEp>, limits: &mut Limits) -> Result {
    loop {
        match ep.open(&limits.queues()) {
            Err(ENOMEM | EINVAL) if limits.halve() => {}
            opened => return opened.map(drop),
        }
    }
}

/// Says which device will not do, and why: all that `mount` can say is that an argument is invalid.
fn unsuitable(ep: &Endpoint<ClientEp>, unsupported: Unsupported) -> ConnectError {
    // Gone by now, if there is no name.
    let _ = ep.with_device_name(|name| {
        pr_err!(
            "{} cannot carry NFS: it lacks {}\n",
            name,
            unsupported.name()
        );
    });
    ConnectError::Unsupported
}

/// Makes what sends, with regions for one large READ or WRITE, and the first Receive buffers; more
/// of both are made when they are missed. Long messages take memory in large pieces: if there is
/// none, `limits` become smaller, and the peer is told that.
fn make_sender(
    ep: &Endpoint<ClientEp>,
    shared: &Arc<XprtShared>,
    limits: &mut Limits,
) -> Result<RequestSender<FenceWaiter>, ConnectError> {
    shared.recv_pool.open(ep);
    let sender = loop {
        match try_make_sender(ep, shared, limits) {
            Err(ENOMEM) if limits.shrink() => {}
            made => break made?,
        }
    };
    let pool = sender.pool();
    let made = pool.grow(limits.mrs_per_call);
    shared.stats.mrs_made.add(u64::from(made));
    trace!(xprtrdma_createmrs(ep.peer_addr(), made));
    let refill = MrRefresh::new(pool.clone(), limits.mrs_per_call, MrWaiters(shared.clone()))?;
    ep.context().mr_refresh.populate(refill);
    let ctrl_sends = CtrlSendPool::new(ep, limits.ctrl_sends(), MIN_LEN)?;
    ep.context().ctrl_sends.populate(ctrl_sends);
    Ok(sender)
}

fn try_make_sender(
    ep: &Endpoint<ClientEp>,
    shared: &XprtShared,
    limits: &Limits,
) -> Result<RequestSender<FenceWaiter>> {
    let count = credit::receives_to_post(0, limits.first_receives(), limits.receive_batch());
    shared
        .recv_pool
        .stock(ep, count, limits.own.receive_size as usize)?;
    RequestSender::new(ep, &limits.sender()).inspect_err(|_| shared.recv_pool.clear())
}
