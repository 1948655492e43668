// SPDX-License-Identifier: GPL-2.0

//! What a server's listeners and connections do for SUNRPC.

use core::{
    ffi::CStr,
    fmt, //
};

use kernel::{
    prelude::*,
    types::ForeignOwnable, //
};

use crate::{
    debugfs::Lines,
    lib::sockaddr::SockAddr,
    sunrpc::{
        error::SendError,
        xdr::XdrBuf, //
    }, //
};

use super::{
    accepting::Accepting,
    backchannel::BackchannelLimits,
    reply::Reply,
    rqst::{
        Arriving,
        Received, //
    },
    state_file::StateFile,
    svc_xprt::{
        NewXprt,
        SvcXprt, //
    },
    types::Types, //
};

/// A listener. [`ops`](super::ops) says in which context each method runs.
pub(crate) trait Listener: Send + Sync + Sized + 'static {
    /// The type of the connections that it accepts.
    type Connection: Connection;

    /// The name of the class, which an administrator writes to `portlist`.
    const NAME: &'static CStr;

    /// Starts to listen on `addr`.
    ///
    /// # Errors
    ///
    /// An errno for the administrator.
    fn create(xprt: NewXprt<Self>, addr: &SockAddr) -> Result<SvcXprt<Self>>;

    /// Accepts one connection, after
    /// [`XprtHandle::set_connection`](super::XprtHandle::set_connection). SUNRPC serialises the
    /// calls.
    fn accept(
        &self,
        accepting: Accepting<'_, Self::Connection>,
    ) -> Option<SvcXprt<Self::Connection>>;

    /// Stops listening: SUNRPC drops its reference to the transport next.
    fn detach(&self);
}

/// A Call that a request refers to. The arguments are in the Call's buffer, so the buffer cannot be
/// replaced.
pub(crate) type CallMut<'a, C> = <<C as Types>::Call as ForeignOwnable>::BorrowedMut<'a>;

/// A connection, which receives Calls and sends Replies.
///
/// Its handlers have no reference to the transport. SUNRPC calls [`Self::has_wspace`] in a handler
/// that [enqueues](super::XprtHandle::enqueue) the transport. Meanwhile another thread may put the
/// last reference, which drops the connection. The drop must wait for the handlers before it
/// changes anything that [`Self::has_wspace`] reads.
pub(crate) trait Connection: Types {
    /// Receives one Call, after [`XprtHandle::set_data`](super::XprtHandle::set_data). SUNRPC
    /// serialises the calls, until [`Arriving::clear_busy`].
    fn receive(&self, rqst: Arriving<'_, Self>) -> Received;

    /// Notes that a part of the Reply is a result that may be placed directly.
    fn result_payload(&self, call: CallMut<'_, Self>, offset: u32, length: u32);

    /// Sends the Reply to a Call. Several threads may be in it at a time.
    ///
    /// # Errors
    ///
    /// SUNRPC does no more than report the errno in its `svc_send` trace event.
    fn send(&self, call: CallMut<'_, Self>, reply: Reply<'_>) -> Result;

    /// Releases a Call; `None` if the request had none. Several threads may be in it at a time.
    fn release(&self, call: Option<Self::Call>);

    /// The limits of backchannel Calls.
    fn backchannel_limits(&self) -> BackchannelLimits;

    /// Sends a backchannel Call. Its Reply arrives in [`Connection::receive`]. Runs in `rpciod`,
    /// and may sleep.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    fn send_backchannel(&self, xid: u32, message: &XdrBuf) -> Result<(), SendError>;

    /// Whether SUNRPC may receive another Call. Runs in any context; must not sleep.
    fn has_wspace(&self) -> bool;

    /// The file of the connection.
    fn state_file(&self) -> &StateFile;

    /// Writes what the file shows. Runs in a task that reads the file, and may sleep.
    ///
    /// # Errors
    ///
    /// That of `lines`.
    fn show(&self, lines: &mut Lines) -> fmt::Result;

    /// Disconnects: SUNRPC drops its reference to the transport next. Does not wait for the peer.
    fn detach(&self);

    /// Whether the drop of the connection may wait for the peer. A work item drops it then.
    fn waits_for_peer(&self) -> bool;
}
