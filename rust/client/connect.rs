// SPDX-License-Identifier: GPL-2.0

//! Connection setup. Runs in the connect worker, with the send lock.
//!
//! C: verbs.c, rpcrdma_xprt_connect(), rpcrdma_ep_create(), rpcrdma_create_id()

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
    connect_failure::ConnectFailure,
    connect_wait::ConnectProgress,
    ep::ClientEp,
    limits::{
        Limits,
        Unsupported,
        DONES, //
    },
    shared::{
        Connection,
        MrWaiters,
        XprtShared, //
    }, //
};

/// Timeout for address resolution, and for route resolution.
const RESOLVE_MS: u32 = 5_000;
/// How much longer than the CM's timeout to wait for its event. The CM always delivers one.
const SLACK_MS: u32 = 1_000;
/// Timeout for the peer's answer. On RoCE the CM times out after 74 s unless the peer extends the
/// timeout (MRA), as a restarted server does while it accepts a backlog of clients. A client that
/// timed out meanwhile would send a new request, behind all others, while the server is still
/// accepting abandoned ones.
const CONNECT_MS: u32 = 180_000;

/// How often the device retransmits an unacknowledged packet. A low value detects a lost path
/// early; SUNRPC sends the RPCs again on the next connection.
const RETRIES: u8 = 6;
/// How often the device retransmits if the peer has no Receive posted. Credits ensure that it has.
const RNR_RETRIES: u8 = 0;

/// Connects to the transport's peer.
///
/// # Errors
///
/// See [`ConnectError`]. All resources are released then.
pub(super) fn connect(
    shared: &Arc<XprtShared>,
) -> Result<(Connection, RequestSender<FenceWaiter>), ConnectError> {
    let (Some(net), Some(peer)) = (shared.xprt.net(), shared.xprt.peer()) else {
        return Err(ConnectError::Protocol);
    };
    let ep = Endpoint::create(net, ClientEp::new(shared.clone()))?;
    let ctx = ep.context();
    let timeout = RESOLVE_MS as usize;
    let most = RESOLVE_MS + SLACK_MS;
    let is_referenced = || shared.xprt.is_referenced();
    ctx.connect_wait
        .ask(|| ep.resolve_addr(&peer, timeout), most, is_referenced)?;
    ctx.connect_wait
        .ask(|| ep.resolve_route(timeout), most, is_referenced)?;

    let device = ep.device()?;
    let mut limits = Limits::for_device(&device, shared.xprt.slots(), shared.backchannel_calls)
        .map_err(|unsupported| unsuitable(&ep, unsupported))?;
    open_queues(&ep, &mut limits)?;
    let sender = make_sender(&ep, shared, &mut limits)?;
    ctx.set_limits(limits);

    // One Call may be outstanding until its Reply grants more credits (RFC 8166 Section 3.3.3).
    // Backchannel Calls may arrive at once.
    shared.xprt.set_window(1);
    if limits.read_depth > 0 {
        ep.reply_reads().open(limits.reply_read_entries);
        ctx.open_dones(&ep, DONES, limits.credits)?;
    }
    let first = limits.first_receives();
    if ctx.post_receives(&ep, first) < first {
        return Err(ConnectError::NoMemory);
    }

    let announcement = Announcement::new(&limits.own, &limits.offer());
    let param = ConnParam {
        responder_resources: u8::try_from(device.max_qp_rd_atom).unwrap_or(u8::MAX),
        // RDMA Reads are used for pulled Replies only.
        initiator_depth: limits.read_depth,
        retry_count: RETRIES,
        rnr_retry_count: RNR_RETRIES,
        private_data: announcement.as_bytes(),
    };
    let answer = ctx
        .connect_wait
        .ask(|| ep.connect(&param), CONNECT_MS, is_referenced)?;
    match answer {
        ConnectProgress::Established(agreement, extensions) => {
            shared.agreed(limits.backchannel_payload(&agreement));
            let private_data = ep.context().has_private_data();
            let limits = limits.call_limits(&agreement, &extensions, private_data);
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

/// Creates the queues, for fewer Calls if need be: the maximum depth of a queue depends on the size
/// of its entries, which only the driver knows.
fn open_queues(ep: &Endpoint<ClientEp>, limits: &mut Limits) -> Result {
    loop {
        match ep.open(&limits.queue_depths()) {
            Err(ENOMEM | EINVAL) if limits.halve() => {}
            opened => return opened.map(drop),
        }
    }
}

/// Logs why a device cannot be used: `mount` only reports an invalid argument.
fn unsuitable(ep: &Endpoint<ClientEp>, unsupported: Unsupported) -> ConnectError {
    // An error means that the device has just been removed.
    let _ = ep.with_device_name(|name| {
        pr_err!(
            "{} cannot carry NFS: it lacks {}\n",
            name.to_str().unwrap_or_default(),
            unsupported.name()
        );
    });
    let failure = ConnectFailure::Unsupported(unsupported);
    ep.context().shared.history.report(failure);
    failure.error()
}

/// Allocates the sender, the MRs for one large READ or WRITE, and the first Receive buffers. More
/// MRs and buffers are allocated on demand. Long messages need high-order allocations and
/// contiguous DMA address space. If either fails, `limits` shrink before the peer is told.
fn make_sender(
    ep: &Endpoint<ClientEp>,
    shared: &Arc<XprtShared>,
    limits: &mut Limits,
) -> Result<RequestSender<FenceWaiter>, ConnectError> {
    shared.recv_pool.open(ep);
    let sender = loop {
        match try_make_sender(ep, shared, limits) {
            Err(ENOMEM | EIO) if limits.shrink() => {}
            made => break made?,
        }
    };
    let pool = sender.pool();
    let made = pool.grow(limits.mrs_per_call);
    shared.stats.mrs_made.add(u64::from(made));
    trace!(xprtrdma_createmrs(ep.peer_addr(), made));
    // A Call that needs more MRs than there will ever be would wait for ever.
    if made < limits.mrs_per_call {
        return Err(ConnectError::NoMemory);
    }
    let most = limits.max_mrs().saturating_sub(made);
    let waiters = MrWaiters(shared.clone());
    let refresh = MrRefresh::new(pool.clone(), limits.mrs_per_call, most, waiters)?;
    ep.context().mr_refresh.populate(refresh);
    let (sends, calls) = (limits.ctrl_sends(), limits.backchannel);
    ep.context().open_errors(ep, sends, calls)?;
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
