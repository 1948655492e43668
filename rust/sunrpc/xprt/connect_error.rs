// SPDX-License-Identifier: GPL-2.0

//! Why a connection was not established, as an errno for the waiting tasks.

use kernel::prelude::*;

use crate::bindings;

/// Why there is no connection. SUNRPC tells the waiting tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The attempt failed; another may succeed.
    NotConnected,
    /// The peer does not answer in time.
    TimedOut,
    /// There is no way to the peer.
    Unreachable,
    /// There is a way, and nobody at its end.
    HostUnreachable,
    /// The peer does not want it.
    Refused,
    /// No RDMA device leads to the peer, or something unforeseen.
    Protocol,
    /// The device went away.
    NoDevice,
    /// The device lacks what this transport needs.
    Unsupported,
    /// There is no memory; another attempt may find some.
    NoMemory,
}

impl ConnectError {
    pub(super) fn to_errno(self) -> c_int {
        let errno = match self {
            // A shortage of memory ends no RPC, it is tried again (E3 in
            // Documentation/bug-classes.rst).
            Self::NotConnected | Self::NoMemory | Self::NoDevice => bindings::ENOTCONN,
            Self::TimedOut => bindings::ETIMEDOUT,
            Self::Unreachable => bindings::ENETUNREACH,
            Self::HostUnreachable => bindings::EHOSTUNREACH,
            Self::Refused => bindings::ECONNREFUSED,
            Self::Protocol => bindings::EPROTO,
            Self::Unsupported => bindings::EINVAL,
        };
        -errno.cast_signed()
    }
}

impl From<Error> for ConnectError {
    /// What the connection manager and the device refuse at once. `ENETUNREACH` fails SOFTCONN RPCs
    /// (`mount`) and, with `fatal_neterrors`, all of a container's. `EHOSTUNREACH` and `EPROTO`
    /// fail SOFTCONN only. siw connects TCP synchronously, so its errors arrive here.
    fn from(error: Error) -> Self {
        match error.to_errno().unsigned_abs() {
            bindings::ENOMEM => Self::NoMemory,
            bindings::ENODEV => Self::NoDevice,
            bindings::ENETUNREACH | bindings::ENETDOWN => Self::Unreachable,
            bindings::EHOSTUNREACH => Self::HostUnreachable,
            bindings::ECONNREFUSED => Self::Refused,
            // A local port that the connection manager has chosen may be in use for TCP.
            bindings::ECONNRESET | bindings::EADDRINUSE | bindings::EADDRNOTAVAIL => {
                Self::NotConnected
            }
            bindings::ETIMEDOUT => Self::TimedOut,
            _ => Self::Protocol,
        }
    }
}
