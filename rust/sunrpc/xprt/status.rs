// SPDX-License-Identifier: GPL-2.0

//! The state of a transport, for its file.

use crate::lib::sockaddr::SockAddr;

/// What SUNRPC and the slots tell about a transport. Other threads change all of it meanwhile.
pub(crate) struct XprtStatus {
    /// The address of the peer.
    pub(crate) peer: Option<SockAddr>,
    /// In one word: `connecting`, `connected`, `closing` or `closed`.
    pub(crate) state: &'static str,
    /// Connections that were established.
    pub(crate) connects: usize,
    /// Calls that SUNRPC counts as outstanding.
    pub(crate) credits_used: usize,
    /// Tasks that wait for a credit, the send lock, or a slot.
    pub(crate) waiting: usize,
    /// Calls that the peer has not answered.
    pub(crate) calls_in_flight: usize,
    /// How long the oldest of these Calls has waited, in milliseconds.
    pub(crate) oldest_call_ms: Option<u64>,
}
