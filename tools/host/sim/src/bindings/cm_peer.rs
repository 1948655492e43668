// SPDX-License-Identifier: GPL-2.0

//! The connection manager for peers of the stage: they listen, connect, and exchange its messages.

use kernel::ffi::c_int;

use super::cm::*;

/// Requests of the module are rejected for this reason from now on, or are not.
pub(crate) fn reject_requests(reason: Option<c_int>) {
    cm(|cm| cm.rejects = reason);
}

/// Nothing answers requests of the module from now on, and each ends after so many nanoseconds, or
/// the server answers.
pub(crate) fn leave_unanswered(time: Option<u64>) {
    cm(|cm| cm.unanswered = time);
}

/// When each of the module's requests was made.
pub(crate) fn requests() -> Vec<u64> {
    cm(|cm| cm.requests.clone())
}

/// Peer number `peer` listens at [`hostile_address`] from now on, or none does.
pub(crate) fn peer_listens(peer: Option<u32>) {
    cm(|cm| cm.hostile = peer);
}

/// A peer asks for a connection; `false` without a listener.
pub(crate) fn peer_connect(qp: u32, param: Param) -> bool {
    let Some(listener) = listener() else {
        return false;
    };
    cm(|cm| {
        let request = Message::Request { param, qp };
        cm.send(End::Peer(qp), End::Id(listener), request);
    });
    true
}

/// A message of the connection manager to a peer.
pub(crate) fn peer_message(qp: u32) -> Option<(End, Message)> {
    cm(|cm| cm.peers.get_mut(&qp)?.pop_front())
}

/// Whether there is such a message.
pub(crate) fn has_peer_message(qp: u32) -> bool {
    cm(|cm| {
        cm.peers
            .get(&qp)
            .is_some_and(|messages| !messages.is_empty())
    })
}

/// A peer sends a message.
pub(crate) fn peer_tells(qp: u32, to: End, message: Message) {
    cm(|cm| cm.send(End::Peer(qp), to, message));
}
