// SPDX-License-Identifier: GPL-2.0

//! What has happened to the connections of a transport, for its file.

use core::fmt;

use kernel::sync::atomic::ordering::Relaxed;

use crate::{
    lib::{
        clock::Since,
        close_reason::{
            CloseReason,
            Closed, //
        },
        counter::SingleWriterCounter,
        sync::Atomic, //
    },
    sunrpc::xprt::ConnectError, //
};

use super::limits::Unsupported;

/// Why an attempt to connect has failed, in more detail than a [`ConnectError`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectFailure {
    /// No RDMA device reaches the address.
    NoDevice,
    /// The neighbour does not answer.
    NoNeighbour,
    /// There is no route.
    NoRoute,
    /// The peer does not answer.
    Unanswered,
    /// Nothing listens on the port, or the peer refuses. The value is the reason in the CM's event.
    Rejected(i32),
    /// The connection has ended before it was used.
    Lost,
    /// The device was removed, or the address has moved to another one.
    DeviceGone,
    /// The device lacks a feature.
    Unsupported(Unsupported),
    /// Anything else.
    Other(ConnectError),
}

/// `ib_cm_rej_reason`: no service has this number.
const NO_LISTENER: i32 = 8;
/// `ib_cm_rej_reason`: the peer has an old connection with the same queue pair.
const STALE: i32 = 10;
/// `ib_cm_rej_reason`: the service has refused.
const BY_CONSUMER: i32 = 28;

impl ConnectFailure {
    /// A number that is not 0.
    fn code(self) -> u64 {
        let (kind, detail) = match self {
            Self::NoDevice => (1, 0),
            Self::NoNeighbour => (2, 0),
            Self::NoRoute => (3, 0),
            Self::Unanswered => (4, 0),
            Self::Rejected(reason) => (5, reason as u32),
            Self::Lost => (6, 0),
            Self::DeviceGone => (7, 0),
            Self::Unsupported(unsupported) => (8, unsupported as u32),
            Self::Other(error) => (9, error as u32),
        };
        kind << 32 | u64::from(detail)
    }

    fn from_code(code: u64) -> Option<Self> {
        // CAST: The lower half.
        let detail = code as u32;
        Some(match code >> 32 {
            1 => Self::NoDevice,
            2 => Self::NoNeighbour,
            3 => Self::NoRoute,
            4 => Self::Unanswered,
            5 => Self::Rejected(detail as i32),
            6 => Self::Lost,
            7 => Self::DeviceGone,
            8 => Self::Unsupported(*Unsupported::ALL.get(detail as usize)?),
            9 => Self::Other(*ConnectError::ALL.get(detail as usize)?),
            _ => return None,
        })
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::NoDevice => "no RDMA device reaches the address",
            Self::NoNeighbour => "address not resolved: the neighbour did not answer",
            Self::NoRoute => "no route to the address",
            Self::Unanswered => "unreachable: the peer did not answer",
            Self::Rejected(NO_LISTENER) => "refused: nothing listens on the port",
            Self::Rejected(STALE) => "refused: the peer has an old connection",
            Self::Rejected(BY_CONSUMER) => "refused by the server",
            Self::Rejected(reason) => return write!(f, "refused (reason {reason})"),
            Self::Lost => "connection lost before it was used",
            Self::DeviceGone => "device removed",
            Self::Unsupported(unsupported) => {
                return write!(f, "device lacks {}", unsupported.name());
            }
            Self::Other(error) => match error {
                ConnectError::NotConnected => "interrupted",
                ConnectError::TimedOut => "timed out",
                ConnectError::Unreachable => "no route to the address",
                ConnectError::HostUnreachable => "unreachable: the peer did not answer",
                ConnectError::PeerMoved => "hardware address of the peer changed",
                ConnectError::Refused => "refused",
                ConnectError::Protocol => "error of the device or the connection manager",
                ConnectError::NoDevice => "device removed",
                ConnectError::Unsupported => "device not supported",
                ConnectError::NoMemory => "no memory",
            },
        };
        f.write_str(words)
    }
}

/// What has happened to the connections of a transport.
pub(super) struct LinkHistory {
    /// When an attempt to connect has begun, has succeeded or failed, or a connection has ended.
    since: Since,
    /// Why the last connection has ended.
    closed: Closed,
    /// Attempts that have failed. Written with the send lock.
    failures: SingleWriterCounter,
    /// Why the last of these has: a [`ConnectFailure`].
    last_failure: Atomic<u64>,
    /// What the connection manager has reported of the present attempt.
    reported: Atomic<u64>,
}

impl LinkHistory {
    pub(super) fn new() -> Self {
        Self {
            since: Since::now(),
            closed: Closed::new(),
            failures: SingleWriterCounter::default(),
            last_failure: Atomic::new(0),
            reported: Atomic::new(0),
        }
    }

    /// An attempt begins.
    pub(super) fn connecting(&self) {
        self.since.restart();
        self.reported.store(0, Relaxed);
    }

    /// Notes why the present attempt fails.
    pub(super) fn report(&self, failure: ConnectFailure) {
        self.reported.store(failure.code(), Relaxed);
    }

    /// The attempt has succeeded.
    pub(super) fn connected(&self) {
        self.since.restart();
    }

    /// The attempt has failed, for the reason that was [reported](Self::report) or else for
    /// `error`.
    pub(super) fn failed(&self, error: ConnectError) {
        self.since.restart();
        self.failures.add(1);
        let code = match self.reported.load(Relaxed) {
            0 => ConnectFailure::Other(error).code(),
            reported => reported,
        };
        self.last_failure.store(code, Relaxed);
    }

    /// A connection has ended.
    pub(super) fn closed(&self, reason: CloseReason) {
        self.since.restart();
        self.closed.set(reason);
    }

    /// Milliseconds since the last of these.
    pub(super) fn state_ms(&self) -> u64 {
        self.since.ms()
    }

    /// Why the last connection has ended.
    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.closed.get()
    }

    /// Attempts that have failed.
    pub(super) fn failures(&self) -> u64 {
        self.failures.get()
    }

    /// Why the last of these has failed.
    pub(super) fn last_failure(&self) -> Option<ConnectFailure> {
        ConnectFailure::from_code(self.last_failure.load(Relaxed))
    }
}
