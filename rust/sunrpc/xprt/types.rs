// SPDX-License-Identifier: GPL-2.0

//! The types that a client's transport brings along.

use crate::lib::foreign_buf::ForeignBuf;

/// What the files of this wing store for a transport, without knowing what the transport does
/// ([`Transport`](super::Transport)).
pub(crate) trait Types: Sized + Send + Sync + 'static {
    /// A connection, complete with all memory that the device can reach. Dropping it returns when
    /// the device can reach none of it any more.
    type Connection: Send + Sync;
    /// What only the holder of the send lock uses.
    type Sender: Send;
    /// What a Call exposes until it is answered or given up.
    type Inflight: Send;
    /// A received message, kept in place while the consumer reads it.
    type Reply: ForeignBuf;
    /// Proof that the peer can reach nothing of a Call any more.
    type Fence;
}
