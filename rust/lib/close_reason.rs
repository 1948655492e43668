// SPDX-License-Identifier: GPL-2.0

//! Why a connection has ended, in words.

use core::fmt;

use kernel::sync::atomic::Relaxed;

use super::sync::Atomic;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident: $by:literal, $words:literal;)*) => {
        /// Why a connection has ended.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) enum CloseReason {
            $($(#[$doc])* $name,)*
            /// A work request has failed, with this `ib_wc_status`.
            Completion(u32),
        }

        /// All reasons but completions, who is responsible, and the words.
        const REASONS: &[(CloseReason, &str, &str)] = &[
            $((CloseReason::$name, $by, $words),)*
        ];
    };
}

reasons! {
    /// The queue pair is in error, and nothing else is known.
    Flushed: "device", "work requests flushed";
    /// The connection manager reports the end of the connection.
    PeerDisconnected: "peer", "peer disconnected";
    /// The peer has not completed the handshake.
    NotEstablished: "peer", "connection not established";
    /// The device is removed.
    DeviceRemoved: "device", "device removed";
    /// The address has moved to another device.
    AddressMoved: "device", "address moved to another device";
    /// The neighbour entry of the peer has another hardware address, or none.
    PeerMoved: "peer", "hardware address of the peer changed";
    /// The device reports an error of the queue pair.
    QueuePairError: "device", "queue pair error";
    /// The device has refused a work request.
    PostFailed: "device", "work request refused";
    /// A message could not be composed or posted.
    NotPosted: "local", "message not posted";
    /// No RPC has used the connection for a while.
    Idle: "local", "idle";
    /// SUNRPC has closed the connection.
    Sunrpc: "local", "closed by SUNRPC";
    /// A Reply is overdue.
    ReplyOverdue: "local", "timed out: no Reply";
    /// Calls without a Reply hold too many credits.
    CreditsOverdue: "local", "too many Calls without a Reply";
    /// A fault was injected.
    Injected: "local", "fault injection";
    /// SUNRPC has closed the backchannel: nfsd has no more use for it, or got no Reply.
    BackchannelClosed: "local", "backchannel closed by nfsd";
    /// nfsd has closed the connection: it stops, or the connection was idle.
    Nfsd: "local", "closed by nfsd";
    /// Nothing completes on the Send Queue.
    Stalled: "local", "stalled Send Queue";
    /// The peer does not let an exposed Reply be released.
    ReleaseOverdue: "local", "release of a pulled Reply overdue";
    /// The peer has sent more messages than it was granted.
    Flooded: "local", "protocol error: credits exceeded";
    /// The peer has invalidated a handle that is not that of the message.
    WrongHandle: "local", "protocol error: wrong handle invalidated";
    /// A message that invalidates a handle is malformed, or must not invalidate one.
    UnexpectedInvalidation: "local", "protocol error: unexpected invalidation";
    /// The peer wants more RDMA_DONEs than there are Calls.
    DonesExceeded: "local", "protocol error: too many pulled Replies";
    /// A pulled Reply is malformed.
    BadPulledReply: "local", "protocol error: malformed pulled Reply";
    /// Memory was not invalidated.
    NotInvalidated: "device", "memory region not invalidated";
}

/// The words for each `ib_wc_status`: those of `ib_wc_status_msg()`, which returns C strings.
const WC_STATUS: [&str; 22] = [
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "WR flushed",
    "bind operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "operation aborted",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
];

/// Completions have codes from here on.
const COMPLETION: u32 = 0x100;

impl CloseReason {
    /// A number that is not 0.
    fn code(self) -> u32 {
        match self {
            Self::Completion(status) => COMPLETION.saturating_add(status),
            _ => {
                let index = REASONS.iter().position(|(reason, ..)| *reason == self);
                // CAST: There are few reasons.
                index.map_or(0, |index| index as u32 + 1)
            }
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        match code.checked_sub(COMPLETION) {
            Some(status) => Some(Self::Completion(status)),
            None => {
                let index = code.checked_sub(1)?;
                REASONS.get(index as usize).map(|(reason, ..)| *reason)
            }
        }
    }

    /// Who has ended the connection: `peer`, `local` or `device`.
    pub(crate) fn by(self) -> &'static str {
        let entry = REASONS.iter().find(|(reason, ..)| *reason == self);
        entry.map_or("device", |(_, by, _)| by)
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Completion(status) = self {
            let words = WC_STATUS.get(*status as usize);
            return write!(f, "completion: {}", words.unwrap_or(&"unknown error"));
        }
        let entry = REASONS.iter().find(|(reason, ..)| reason == self);
        f.write_str(entry.map_or("", |(.., words)| words))
    }
}

/// The reason why one connection has ended.
pub(crate) struct Closed(Atomic<u32>);

impl Closed {
    /// The connection has not ended.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Notes a reason. Only the first one counts, but each is better than
    /// [`CloseReason::Flushed`], which follows from all others. In any context.
    #[cold]
    pub(crate) fn note(&self, reason: CloseReason) {
        let flushed = CloseReason::Flushed.code();
        let mut old = self.0.load(Relaxed);
        while old == 0 || old == flushed {
            match self.0.cmpxchg(old, reason.code(), Relaxed) {
                Ok(_) => return,
                Err(other) => old = other,
            }
        }
    }

    /// Replaces the reason.
    pub(crate) fn set(&self, reason: CloseReason) {
        self.0.store(reason.code(), Relaxed);
    }

    /// Removes the reason, and returns it.
    pub(crate) fn take(&self) -> Option<CloseReason> {
        CloseReason::from_code(self.0.xchg(0, Relaxed))
    }

    /// The reason, if there is one.
    pub(crate) fn get(&self) -> Option<CloseReason> {
        CloseReason::from_code(self.0.load(Relaxed))
    }
}
