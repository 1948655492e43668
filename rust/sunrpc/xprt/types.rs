// SPDX-License-Identifier: GPL-2.0

//! The types that a client's transport defines.

use crate::lib::{
    fence::FencesOnDrop,
    foreign_buf::ForeignBuf, //
};

/// What the files of this wing store for a transport, without knowing what the transport does
/// ([`Transport`](super::Transport)).
pub(crate) trait Types: Sized + Send + Sync + 'static {
    /// The local end of a connection. When its drop returns, the device can no longer reach memory
    /// through it.
    type Endpoint: FencesOnDrop + Send + Sync;
    /// What both ends have agreed on for a connection.
    type Limits: Send + Sync;
    /// State of the sending side. Only the holder of the send lock uses it.
    type Sender: Send;
    /// What exposes memory of a Call to the peer.
    type Exposed: Send;
    /// What the transport notes of a Call until it is answered or abandoned.
    type Inflight: Copy + Send;
    /// A received message, kept in place while the consumer reads it.
    type Reply: ForeignBuf;
}

/// A connection.
pub(crate) struct Connection<T: Types> {
    /// The local end.
    pub(crate) ep: T::Endpoint,
    /// What both ends have agreed on.
    pub(crate) limits: T::Limits,
}

/// A Call that the peer may reply to.
pub(super) struct Outstanding<T: Types> {
    /// What exposes memory of the Call.
    pub(super) exposed: T::Exposed,
    /// What the transport notes of the Call.
    pub(super) inflight: T::Inflight,
}
