// SPDX-License-Identifier: GPL-2.0

//! Why a Call was not sent, on a client's transport or on a server's backchannel transport.

use kernel::prelude::*;

use crate::bindings;

/// Why a Call was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// There is no connection any more; it is closed, and SUNRPC makes another.
    NotConnected,
    /// The peer has to answer other Calls first.
    NoCredit,
    /// Something is used up that will come back: try again when told of space.
    Again,
    /// There is no memory: try again in a while.
    NoBuffers,
    /// The Call does not fit the transport. The RPC fails.
    TooBig,
    /// The Call cannot be conveyed. The RPC fails.
    Io,
}

impl SendError {
    /// As SUNRPC knows it.
    pub(crate) fn to_errno(self) -> c_int {
        let errno = match self {
            Self::NotConnected => bindings::ENOTCONN,
            Self::NoCredit => bindings::EBADSLT,
            Self::Again => bindings::EAGAIN,
            Self::NoBuffers => bindings::ENOBUFS,
            Self::TooBig => bindings::EMSGSIZE,
            Self::Io => bindings::EIO,
        };
        -errno.cast_signed()
    }
}
