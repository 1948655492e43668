// SPDX-License-Identifier: GPL-2.0

//! What a client's transport does for SUNRPC.

use core::{
    ffi::CStr,
    fmt, //
};

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    sync::Arc, //
};

use crate::{
    debugfs::Lines,
    lib::{
        close_reason::CloseReason,
        fence::{
            Reachable,
            Unreachable, //
        },
        sockaddr::SockAddr, //
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
    status::XprtStatus,
    types::{
        Connection,
        Types, //
    }, //
};

/// A client's transport. [`ops`](super::ops) says in which context each method runs.
pub(crate) trait Transport: Types {
    /// The netids for IPv4 and IPv6. The first one is also the name of the class.
    const NETIDS: [&'static CStr; 2];
    /// The largest payload of a READ or WRITE, in bytes.
    const MAX_PAYLOAD: usize;

    /// The number of slots of a new transport, which limits the outstanding RPCs.
    fn slots() -> u32;

    /// The number of outstanding backchannel Calls that the transport accepts.
    fn backchannel_slots(&self) -> u32;

    /// Creates a transport that is not connected.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(
        xprt: XprtHandle<Self>,
        credits: Arc<Credits<XprtHandle<Self>>>,
        backchannel: Arc<BackchannelPool<Self>>,
    ) -> Result<Self>;

    /// Connects. Runs in the connect worker, and sleeps.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    fn connect(&self) -> Result<(Connection<Self>, Self::Sender), ConnectError>;

    /// Starts to end a connection; the drop of the connection completes the end. After this call,
    /// no thread may wait long for the connection, for example in [`Transport::fence`]. `reason`
    /// applies unless the transport has noted another.
    fn disconnect(connection: &Connection<Self>, reason: CloseReason);

    /// Ends the connection as if the network had failed.
    fn inject_disconnect(connection: &Connection<Self>);

    /// The address of this end of a connection.
    fn local_addr(connection: &Connection<Self>) -> Option<SockAddr>;

    /// Sends a Call.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. The Call was not sent, except for [`SendError::NotConnected`].
    fn send<'a>(
        &self,
        connection: &Connection<Self>,
        sender: &mut Self::Sender,
        call: Call<'a, Self>,
    ) -> Result<Committed<'a, Self>, SendError>;

    /// Sends the Reply to a backchannel Call.
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

    /// Fences the memory of an abandoned RPC. Returns when the peer can no longer reach the memory.
    /// May sleep for a short time.
    fn fence<'a>(
        &self,
        connection: &Connection<Self>,
        rpc: Reachable<Abandoned<'a, Self>, Self::Exposed>,
    ) -> Unreachable<Abandoned<'a, Self>>;

    /// Takes back a buffer whose message has been read.
    fn recycle(&self, reply: Self::Reply);

    /// Counts `bytes` that were allocated because an RPC needed longer buffers.
    fn count_buffer_growth(&self, bytes: usize);

    /// The largest backchannel Call or Reply, in bytes.
    fn backchannel_payload(&self) -> usize;

    /// Writes what the transport's file shows. `connection` stays meanwhile, and nothing may be
    /// allocated.
    ///
    /// # Errors
    ///
    /// That of `lines`.
    fn show(
        &self,
        status: &XprtStatus,
        connection: Option<&Connection<Self>>,
        lines: &mut Lines,
    ) -> fmt::Result;

    /// Prints the transport's part of the `xprt:` line of `mountstats`.
    fn print_stats(&self, seq: &SeqFile);
}
