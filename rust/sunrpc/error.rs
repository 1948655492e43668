// SPDX-License-Identifier: GPL-2.0

//! Why a Call was not sent: the same for a client's transport and a server's backchannel transport.

use kernel::prelude::*;

use crate::bindings;

/// Why a Call was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// The connection is lost. The transport is closed, and SUNRPC connects again.
    NotConnected,
    /// The peer grants no more credits until it has replied to other Calls.
    NoCredit,
    /// A resource is in use and will be returned: try again after `xprt_write_space()`.
    Again,
    /// An allocation failed: try again after a delay.
    NoBuffers,
    /// The Call exceeds what the transport can carry. The RPC fails.
    TooBig,
    /// The transport cannot express the Call. The RPC fails.
    Io,
}

impl SendError {
    /// The errno that SUNRPC expects of `send_request`.
    pub(crate) fn to_errno(self) -> c_int {
        let errno = match self {
            Self::NotConnected => bindings::ENOTCONN,
            Self::NoCredit => bindings::EBADSLT,
            Self::Again => bindings::EAGAIN,
            Self::NoBuffers => bindings::ENOBUFS,
            Self::TooBig => bindings::EMSGSIZE,
            Self::Io => bindings::EIO,
        };
        -(errno as c_int)
    }
}
