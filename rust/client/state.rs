// SPDX-License-Identifier: GPL-2.0

//! The text of a transport's file under `/sys/kernel/debug/rpcrdma/client`.
//!
//! `Documentation/operating.rst` has the names, which programs rely on.

use core::fmt;

use crate::{
    debugfs::Lines,
    lib::sockaddr::Family,
    sunrpc::xprt::XprtStatus, //
};

use super::{
    ep::ClientEp,
    shared::{
        Connection,
        XprtShared, //
    }, //
};

/// Writes the state of a transport. Allocates nothing.
pub(super) fn show(
    shared: &XprtShared,
    status: &XprtStatus,
    conn: Option<&Connection>,
    lines: &mut Lines,
) -> fmt::Result {
    show_link(shared, status, conn, lines)?;
    show_agreement(conn, lines)?;
    show_resources(status, conn, lines)?;
    show_counters(shared, lines)
}

/// Addresses, state, and what has happened to the connections.
fn show_link(
    shared: &XprtShared,
    status: &XprtStatus,
    conn: Option<&Connection>,
    lines: &mut Lines,
) -> fmt::Result {
    let netid = status.peer.map(|peer| match peer.family() {
        Family::Inet => "rdma",
        Family::Inet6 => "rdma6",
    });
    lines.maybe("netid", netid)?;
    lines.maybe("peer", status.peer.map(|peer| peer.socket_addr()))?;
    let source = conn.and_then(|conn| conn.ep.local_addr());
    lines.maybe("source", source.map(|source| source.socket_addr()))?;
    let name = conn.and_then(|conn| conn.ep.device_name());
    let name = name.as_ref().and_then(|name| name.to_str().ok());
    lines.maybe("device", name)?;
    lines.maybe("device_port", conn.map(|conn| conn.ep.port()))?;
    let history = &shared.history;
    let closing = conn.and_then(|conn| conn.ep.context().close_reason());
    let reason = closing.or_else(|| history.close_reason());
    lines.value("state", status.state)?;
    lines.value("state_ms", history.state_ms())?;
    lines.maybe("closed_by", reason.map(|reason| reason.by()))?;
    lines.maybe("closed_why", reason)?;
    lines.value("connects", status.connects)?;
    lines.value("failed_connects", history.failures())?;
    lines.maybe("last_connect_error", history.last_failure())
}

/// What both ends have agreed on.
fn show_agreement(conn: Option<&Connection>, lines: &mut Lines) -> fmt::Result {
    let limits = conn.map(|conn| &conn.limits);
    lines.maybe("inline_send_bytes", limits.map(|limits| limits.send))?;
    lines.maybe("inline_recv_bytes", limits.map(|limits| limits.receive))?;
    let ctx = conn.map(|conn| conn.ep.context());
    lines.flag(
        "remote_invalidation",
        ctx.map(ClientEp::remote_invalidation),
    )?;
    let pulled = ctx.map(|ctx| ctx.extensions().pulled_replies);
    lines.flag("pulled_replies", pulled)
}

/// What is in use, and what Calls wait for.
fn show_resources(
    status: &XprtStatus,
    conn: Option<&Connection>,
    lines: &mut Lines,
) -> fmt::Result {
    let ctx = conn.map(|conn| conn.ep.context());
    lines.maybe("credits_granted", ctx.map(ClientEp::granted))?;
    lines.value("credits_used", status.credits_used)?;
    lines.value("credits_waiting", status.waiting)?;
    let posted = ctx.map(|ctx| ctx.recv_queue.posted());
    lines.maybe("receives_posted", posted)?;
    let refresh = ctx.and_then(|ctx| ctx.mr_refresh.as_ref());
    let mrs = refresh.map(|refresh| refresh.pool().usage());
    lines.maybe("mrs_idle", mrs.map(|mrs| mrs.idle))?;
    lines.maybe("mrs_used", mrs.map(|mrs| mrs.used))?;
    lines.value("calls_in_flight", status.calls_in_flight)?;
    lines.maybe("oldest_call_ms", status.oldest_call_ms)
}

/// What was counted since the transport was created.
fn show_counters(shared: &XprtShared, lines: &mut Lines) -> fmt::Result {
    let stats = &shared.stats;
    let send = &stats.send;
    lines.value("calls_inline", send.calls_inline.get())?;
    lines.value("calls_read", send.calls_read.get())?;
    lines.value("calls_write", send.calls_write.get())?;
    lines.value("calls_reply_chunk", send.calls_reply_chunk.get())?;
    lines.value("replies_pulled", stats.pulled.get())?;
    let sent = [send.inline_bytes.get(), stats.control_bytes.get()];
    let inline = sent
        .into_iter()
        .fold(stats.received.get(), u64::wrapping_add);
    lines.value("inline_bytes", inline)?;
    lines.value("read_bytes", send.read_bytes.get())?;
    lines.value("written_bytes", stats.written.get())?;
    lines.value("pulled_bytes", stats.pulled_bytes.get())?;
    lines.value("retransmissions", send.retransmissions.get())?;
    lines.value("mr_waits", send.mr_waits.get())?;
    lines.value("send_queue_waits", send.ring_full.get())?;
    lines.value("backchannel_calls", stats.backchannel_calls.get())
}
