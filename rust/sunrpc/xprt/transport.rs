// SPDX-License-Identifier: GPL-2.0

//! What the client makes of RDMA, as SUNRPC sees it: a transport that connects.

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    sync::Arc, //
};

use crate::{
    lib::fence::{
        Reachable,
        Unreachable, //
    },
    sunrpc::{
        credits::Credits,
        error::SendError, //
    }, //
};

use super::{
    backchannel::{
        BackchannelPool,
        BackchannelReply, //
    },
    call::{
        Call,
        Committed, //
    },
    claim::Abandoned,
    connect_error::ConnectError,
    handle::XprtHandle,
    types::{
        Connection,
        Types, //
    }, //
};

/// What a connecting transport does; SUNRPC's side of it is in this room.
pub(crate) trait Transport: Types {
    /// The name of the transport in `/proc` and in mount options; its netids.
    const NETIDS: [&'static CStr; 2];
    /// Bytes that a READ or WRITE can carry.
    const MAX_PAYLOAD: usize;

    /// How many RPCs a new transport lets be outstanding.
    fn slots() -> u32;

    /// How many reverse Calls this transport lets be outstanding.
    fn backchannel_slots(&self) -> u32;

    /// A new transport, not connected.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(
        xprt: XprtHandle<Self>,
        credits: Arc<Credits<XprtHandle<Self>>>,
        backchannel: Arc<BackchannelPool<Self>>,
    ) -> Result<Self>;

    /// Connects. Runs in the connect worker.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    fn connect(&self) -> Result<(Connection<Self>, Self::Sender), ConnectError>;

    /// Begins to end a connection: what waits for it, in [`Transport::fence`] say, must not wait
    /// long after this.
    fn disconnect(connection: &Connection<Self>);

    /// Ends the connection as if the network had.
    fn inject_disconnect(connection: &Connection<Self>);

    /// Sends a Call.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. The Call has not been sent, except for [`SendError::NotConnected`].
    fn send<'a>(
        &self,
        connection: &Connection<Self>,
        sender: &mut Self::Sender,
        call: Call<'a, Self>,
    ) -> Result<Committed<'a, Self>, SendError>;

    /// Sends the Reply to a reverse Call.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    fn send_backchannel(
        &self,
        connection: &Connection<Self>,
        sender: &mut Self::Sender,
        reply: &BackchannelReply<'_, Self>,
    ) -> Result<(), SendError>;

    /// Fences the memory of an RPC that its task abandons. Returns when the peer can no longer
    /// reach the memory. May sleep, not for long.
    fn fence<'a>(
        &self,
        connection: &Connection<Self>,
        rpc: Reachable<Abandoned<'a, Self>, Self::Exposed>,
    ) -> Unreachable<Abandoned<'a, Self>>;

    /// Takes back a buffer whose message has been read.
    fn recycle(&self, reply: Self::Reply);

    /// Notes that buffers had to be allocated for an RPC.
    fn buffers_grown(&self, bytes: usize);

    /// Bytes that a reverse Call or its Reply may have.
    fn backchannel_payload(&self) -> usize;

    /// This transport's part of the line in `mountstats`.
    fn print_stats(&self, seq: &SeqFile);
}
