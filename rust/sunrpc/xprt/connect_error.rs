// SPDX-License-Identifier: GPL-2.0

//! Why a connection was not established, and the errno for the waiting tasks.

use kernel::prelude::*;

use crate::bindings;

/// Why a connection was not established. SUNRPC passes the errno to the waiting tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The attempt failed; another one may succeed.
    NotConnected,
    /// The peer did not answer in time.
    TimedOut,
    /// There is no route to the peer.
    Unreachable,
    /// There is a route, but no host at its end.
    HostUnreachable,
    /// The peer's hardware address has changed during the attempt.
    PeerMoved,
    /// The peer refused the connection.
    Refused,
    /// No RDMA device reaches the peer, or an unexpected error.
    Protocol,
    /// The device was removed.
    NoDevice,
    /// The device lacks a required feature.
    Unsupported,
    /// An allocation failed; another attempt may succeed.
    NoMemory,
}

/// What an attempt to connect has shown of the peer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerState {
    /// The attempt has reached the network, and no server.
    Away,
    /// The address belongs to another machine since, which may answer at once.
    Moved,
    /// Nothing: the attempt has failed at this end, or has succeeded.
    Unknown,
}

impl ConnectError {
    /// What the attempt has shown of the peer.
    pub(super) fn peer_state(self) -> PeerState {
        match self {
            Self::TimedOut | Self::Unreachable | Self::HostUnreachable | Self::Refused => {
                PeerState::Away
            }
            Self::PeerMoved => PeerState::Moved,
            _ => PeerState::Unknown,
        }
    }

    pub(super) fn to_errno(self) -> c_int {
        let errno = match self {
            // A failed allocation must not end an RPC, so the tasks try again (E3 in
            // Documentation/bug-classes.rst).
            Self::NotConnected | Self::NoMemory | Self::NoDevice | Self::PeerMoved => {
                bindings::ENOTCONN
            }
            Self::TimedOut => bindings::ETIMEDOUT,
            Self::Unreachable => bindings::ENETUNREACH,
            Self::HostUnreachable => bindings::EHOSTUNREACH,
            Self::Refused => bindings::ECONNREFUSED,
            Self::Protocol => bindings::EPROTO,
            Self::Unsupported => bindings::EINVAL,
        };
        -(errno as c_int)
    }
}

impl From<Error> for ConnectError {
    /// Converts an error that the connection manager or the device returns from a call.
    ///
    /// `ENETUNREACH` fails SOFTCONN RPCs (`mount`) and, with `fatal_neterrors`, all of a
    /// container's. `EHOSTUNREACH` and `EPROTO` fail SOFTCONN RPCs only. siw connects its TCP
    /// socket synchronously, so socket errors arrive here.
    fn from(error: Error) -> Self {
        match error.to_errno().unsigned_abs() {
            bindings::ENOMEM => Self::NoMemory,
            bindings::ENODEV => Self::NoDevice,
            bindings::ENETUNREACH | bindings::ENETDOWN => Self::Unreachable,
            bindings::EHOSTUNREACH => Self::HostUnreachable,
            bindings::ECONNREFUSED => Self::Refused,
            // A TCP socket may use the local port that the connection manager has chosen.
            bindings::ECONNRESET | bindings::EADDRINUSE | bindings::EADDRNOTAVAIL => {
                Self::NotConnected
            }
            bindings::ETIMEDOUT => Self::TimedOut,
            _ => Self::Protocol,
        }
    }
}
