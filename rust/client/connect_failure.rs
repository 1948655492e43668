// SPDX-License-Identifier: GPL-2.0

//! Why an attempt to connect has failed: in words, for administrators, and as a [`ConnectError`],
//! for SUNRPC. Documentation/operating.rst has the words with their remedies.

use core::fmt;

use crate::sunrpc::xprt::ConnectError;

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
    /// A host has the address, but its connection manager does not answer.
    Unanswered,
    /// This end has stopped waiting for the peer.
    TimedOut,
    /// The hardware address of the peer has changed during the attempt.
    PeerMoved,
    /// The peer refuses. The value is the reason in the CM's event.
    Rejected(i32),
    /// The peer refuses because it has an old connection with the same queue pair.
    Stale,
    /// The connection has ended before it was used.
    Lost,
    /// The transport is not needed any more, or a signal has ended the attempt.
    Interrupted,
    /// The device was removed, or its address has moved to another one.
    DeviceGone,
    /// The device lacks a feature.
    Unsupported(Unsupported),
    /// An allocation has failed.
    NoMemory,
    /// The device or the connection manager reports another error.
    Device,
}

/// `ib_cm_rej_reason`: no service has this number.
const NO_LISTENER: i32 = 8;
/// `ib_cm_rej_reason`: the service has refused.
const BY_CONSUMER: i32 = 28;
/// The reason over iWARP, `-ECONNREFUSED`: no socket listens.
const NO_SOCKET: i32 = -111;

/// Failures without a value, by their number.
const PLAIN: [ConnectFailure; 12] = [
    ConnectFailure::NoDevice,
    ConnectFailure::NoNeighbour,
    ConnectFailure::NoRoute,
    ConnectFailure::Unanswered,
    ConnectFailure::TimedOut,
    ConnectFailure::PeerMoved,
    ConnectFailure::Stale,
    ConnectFailure::Lost,
    ConnectFailure::Interrupted,
    ConnectFailure::DeviceGone,
    ConnectFailure::NoMemory,
    ConnectFailure::Device,
];

/// Kinds of numbers: those of [`PLAIN`], and failures with a value.
const KIND_PLAIN: u64 = 1;
const KIND_REJECTED: u64 = 2;
const KIND_UNSUPPORTED: u64 = 3;

impl ConnectFailure {
    /// A number that is not 0.
    pub(super) fn code(self) -> u64 {
        let (kind, detail) = match self {
            Self::Rejected(reason) => (KIND_REJECTED, reason as u32),
            Self::Unsupported(unsupported) => (KIND_UNSUPPORTED, unsupported as u32),
            _ => {
                let index = PLAIN.iter().position(|failure| *failure == self);
                // CAST: There are few.
                (KIND_PLAIN, index.map_or(u32::MAX, |index| index as u32))
            }
        };
        kind << 32 | u64::from(detail)
    }

    /// The failure with this number.
    pub(super) fn from_code(code: u64) -> Option<Self> {
        // CAST: The lower half.
        let detail = code as u32;
        match code >> 32 {
            KIND_PLAIN => PLAIN.get(detail as usize).copied(),
            KIND_REJECTED => Some(Self::Rejected(detail as i32)),
            KIND_UNSUPPORTED => {
                let unsupported = Unsupported::ALL.get(detail as usize)?;
                Some(Self::Unsupported(*unsupported))
            }
            _ => None,
        }
    }

    /// What SUNRPC is told.
    pub(super) fn error(self) -> ConnectError {
        match self {
            Self::NoDevice | Self::Device => ConnectError::Protocol,
            // The server does not answer. After ETIMEDOUT, mount(8), which might try another
            // address, would retry for minutes. ENETUNREACH would fail the tasks of a container
            // (fatal_neterrors) each time its server is slow to start.
            Self::NoNeighbour | Self::Unanswered => ConnectError::HostUnreachable,
            Self::NoRoute => ConnectError::Unreachable,
            Self::TimedOut => ConnectError::TimedOut,
            Self::PeerMoved => ConnectError::PeerMoved,
            Self::Rejected(_) => ConnectError::Refused,
            // By the next attempt the peer will have noticed that the old connection has ended.
            Self::Stale | Self::Lost | Self::Interrupted => ConnectError::NotConnected,
            Self::DeviceGone => ConnectError::NoDevice,
            Self::Unsupported(_) => ConnectError::Unsupported,
            Self::NoMemory => ConnectError::NoMemory,
        }
    }

    /// What an administrator should check. `None` if another attempt is likely to succeed, or if
    /// the failure has a line of its own in the kernel log.
    pub(super) fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::NoDevice => ": compare rdma link and ip route get",
            Self::NoNeighbour => ": is it up, and are the address and the VLAN right?",
            Self::NoRoute => ": see ip route get",
            Self::Unanswered => {
                ": has it an RDMA device there (rdma link), and does every firewall pass RDMA \
                 (RoCE: UDP port 4791)?"
            }
            Self::TimedOut => {
                ": is it up, and does every firewall pass RDMA (RoCE: UDP port 4791)?"
            }
            Self::Rejected(NO_LISTENER | NO_SOCKET) => "; see its /proc/fs/nfsd/portlist",
            Self::Rejected(_) => "; its trace event svcrdma_accept_err has the errno",
            Self::DeviceGone => ": see rdma link",
            Self::NoMemory => "",
            Self::Device => ": see the messages of its driver",
            Self::PeerMoved
            | Self::Stale
            | Self::Lost
            | Self::Interrupted
            | Self::Unsupported(_) => return None,
        })
    }
}

/// The failure behind an error that no event of the connection manager explains.
impl From<ConnectError> for ConnectFailure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NotConnected => Self::Interrupted,
            ConnectError::TimedOut => Self::TimedOut,
            ConnectError::Unreachable => Self::NoRoute,
            ConnectError::HostUnreachable => Self::Unanswered,
            ConnectError::PeerMoved => Self::PeerMoved,
            // siw connects its socket before the event.
            ConnectError::Refused => Self::Rejected(NO_SOCKET),
            ConnectError::Protocol | ConnectError::Unsupported => Self::Device,
            ConnectError::NoDevice => Self::DeviceGone,
            ConnectError::NoMemory => Self::NoMemory,
        }
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::NoDevice => "no RDMA device of this host reaches this address",
            Self::NoNeighbour => "no host answers at this address",
            Self::NoRoute => "no route to this address",
            Self::Unanswered => "no RDMA host answers at this address",
            Self::TimedOut => "no answer",
            Self::PeerMoved => "hardware address of the peer changed",
            Self::Rejected(NO_LISTENER | NO_SOCKET) => {
                "refused: no NFS server listens for RDMA on this port"
            }
            Self::Rejected(BY_CONSUMER) => "refused by the server",
            Self::Rejected(reason) => return write!(f, "refused (reason {reason})"),
            Self::Stale => "refused: the peer has an old connection",
            Self::Lost => "connection lost before it was used",
            Self::Interrupted => "interrupted",
            Self::DeviceGone => "the RDMA device was removed, or its address has changed",
            Self::Unsupported(unsupported) => {
                return write!(f, "device lacks {}", unsupported.name());
            }
            Self::NoMemory => "out of memory",
            Self::Device => "error of the device or the connection manager",
        };
        f.write_str(words)
    }
}
