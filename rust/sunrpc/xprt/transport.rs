// SPDX-License-Identifier: GPL-2.0

//! What the client makes of RDMA, as SUNRPC sees it: a transport that connects, and why it may not.

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::foreign_buf::ForeignBuf, //
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
    credits::Credits,
    handle::XprtHandle, //
};

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

/// What a connecting transport does; SUNRPC's side of it is in this room.
pub(crate) trait Transport: Sized + Send + Sync + 'static {
    /// A connection, complete with whatever the device can reach. Dropping it returns when nothing
    /// of it can be reached any more.
    type Connection: Send + Sync;
    /// What only the send lock's holder uses.
    type Sender: Send;
    /// What a Call exposes until it is answered or given up.
    type Inflight: Send;
    /// Keeps a received message in place while it is read.
    type Reply: ForeignBuf;
    /// Proof that nothing of a Call is exposed any more.
    type Fence;

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
    fn connect(&self) -> Result<(Self::Connection, Self::Sender), ConnectError>;

    /// Begins to end a connection: what waits for it, in [`Transport::fence`] say, must not wait
    /// long after this.
    fn disconnect(connection: &Self::Connection);

    /// Ends the connection as if the network had.
    fn inject_disconnect(connection: &Self::Connection);

    /// Sends a Call.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. The Call has not been sent, except for [`SendError::NotConnected`].
    fn send<'a>(
        &self,
        connection: &Self::Connection,
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
        connection: &Self::Connection,
        sender: &mut Self::Sender,
        reply: &BackchannelReply<'_, Self>,
    ) -> Result<(), SendError>;

    /// Takes back what an RPC exposed that SUNRPC has given up. Returns when the peer can no longer
    /// reach it. May sleep, not for long.
    fn fence(&self, connection: &Self::Connection, inflight: Self::Inflight) -> Self::Fence;

    /// Takes back a buffer whose message has been read.
    fn recycle(&self, reply: Self::Reply);

    /// Notes that buffers had to be allocated for an RPC.
    fn buffers_grown(&self, bytes: usize);

    /// Bytes that a reverse Call or its Reply may have.
    fn backchannel_payload(&self) -> usize;

    /// This transport's part of the line in `mountstats`.
    fn print_stats(&self, seq: &SeqFile);
}
