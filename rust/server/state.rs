// SPDX-License-Identifier: GPL-2.0

//! The text of a connection's file under `/sys/kernel/debug/rpcrdma/server`, and of its line in
//! `ended`.
//!
//! `Documentation/operating.rst` has the names, which programs rely on.

use core::fmt;

use crate::{
    debugfs::{
        self,
        Lines, //
    },
    lib::{
        close_reason::CloseReason,
        sockaddr::Family, //
    },
    sunrpc::svc::XprtHandle,
    verbs::Drained, //
};

use super::{
    connection::Connection,
    ep::ServerEp, //
};

/// Writes the state of a connection.
pub(super) fn show(conn: &Connection, lines: &mut Lines) -> fmt::Result {
    show_link(conn, lines)?;
    show_agreement(conn, lines)?;
    show_resources(conn, lines)?;
    show_counters(conn.ep.context(), lines)
}

/// Addresses and state.
fn show_link(conn: &Connection, lines: &mut Lines) -> fmt::Result {
    let ctx = conn.ep.context();
    let peer = conn.ep.peer_addr();
    let netid = peer.map(|peer| match peer.family() {
        Family::Inet => "rdma",
        Family::Inet6 => "rdma6",
    });
    lines.maybe("netid", netid)?;
    lines.maybe("peer", peer.map(|peer| peer.socket_addr()))?;
    let source = conn.ep.local_addr();
    lines.maybe("source", source.map(|source| source.socket_addr()))?;
    let name = conn.ep.device_name();
    let name = name.as_ref().and_then(|name| name.to_str().ok());
    lines.maybe("device", name)?;
    lines.value("device_port", conn.ep.port())?;
    lines.value("state", word(ctx))?;
    lines.value("state_ms", ctx.state_ms())?;
    let reason = ctx.close_reason();
    lines.maybe("closed_by", reason.map(CloseReason::by))?;
    lines.maybe("closed_why", reason)?;
    lines.flag("admitted", ctx.xprt().map(XprtHandle::is_peer_valid))
}

/// The state in one word.
fn word(ctx: &ServerEp) -> &'static str {
    if ctx.is_closing() {
        "closing"
    } else if ctx.is_established() {
        "connected"
    } else {
        "accepting"
    }
}

/// What both ends have agreed on.
fn show_agreement(conn: &Connection, lines: &mut Lines) -> fmt::Result {
    lines.value("inline_send_bytes", conn.agreement.send)?;
    lines.value("inline_recv_bytes", conn.agreement.receive)?;
    let invalidation = conn.agreement.remote_invalidation;
    lines.flag("remote_invalidation", Some(invalidation))?;
    lines.flag("pulled_replies", Some(conn.extensions.pulled_replies))?;
    let credits = conn.ep.context().recv_queue.granted();
    lines.value("credits_granted", credits)
}

/// What is in use, and what waits.
fn show_resources(conn: &Connection, lines: &mut Lines) -> fmt::Result {
    let ctx = conn.ep.context();
    lines.maybe("calls_in_flight", ctx.xprt().map(XprtHandle::requests))?;
    lines.maybe("oldest_call_ms", ctx.recv_queue.oldest_ms())?;
    lines.value("receives_posted", ctx.recv_queue.posted())?;
    lines.value("send_backlog", ctx.send_backlog.len())?;
    lines.value("reads_queued", ctx.read_throttle.queued())?;
    lines.value("pulled_pages", ctx.read_throttle.pages())?;
    let (replies, pages) = ctx.exposed.usage();
    lines.value("exposed_replies", replies)?;
    lines.value("exposed_pages", pages)
}

/// What was counted since the connection was accepted.
fn show_counters(ctx: &ServerEp, lines: &mut Lines) -> fmt::Result {
    let counters = &ctx.counters;
    let send = &counters.send;
    lines.value("calls", counters.calls())?;
    lines.value("calls_with_read_chunks", send.reads.get())?;
    lines.value("replies_inline", send.inline.get())?;
    lines.value("replies_write", send.written.get())?;
    lines.value("replies_pulled", send.exposed.get())?;
    let received = counters.receive.bytes.get();
    let inline = send.inline_bytes.get().wrapping_add(received);
    lines.value("inline_bytes", inline)?;
    lines.value("read_bytes", send.read_bytes.get())?;
    lines.value("written_bytes", send.written_bytes.get())?;
    lines.value("send_backlog_waits", counters.send_waits.get())?;
    lines.value("stalls", ctx.stall_detector.stalls())?;
    lines.value("backchannel_calls", counters.backchannel_calls.get())
}

/// Remembers that a connection has ended. The work request whose status tells why may complete
/// after SUNRPC has dropped the connection.
pub(super) fn note_end(ep: &Drained<'_, ServerEp>) {
    let ctx = ep.context();
    // SUNRPC did not get the others.
    let Some(number) = ctx.file.number() else {
        return;
    };
    let reason = ctx.close_reason().unwrap_or(CloseReason::Nfsd);
    let by = reason.by();
    match ep.peer_addr().map(|peer| peer.socket_addr()) {
        Some(peer) => debugfs::connection_ended(
            format_args!("{number}\t{peer}"),
            format_args!("{by}\t{reason}"),
        ),
        None => {
            debugfs::connection_ended(format_args!("{number}\t-"), format_args!("{by}\t{reason}"))
        }
    }
}
