// SPDX-License-Identifier: GPL-2.0

//! What the server makes of RDMA, as SUNRPC sees it: transports that listen, and transports that
//! carry messages.

use kernel::prelude::*;

use crate::{
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
    svc_xprt::{
        NewXprt,
        SvcXprt, //
    },
    types::Types, //
};

/// What listens for connections.
pub(crate) trait Listener: Send + Sync + Sized + 'static {
    /// What it accepts.
    type Connection: Connection;

    /// Starts to listen on `addr`.
    fn create(xprt: NewXprt<Self>, addr: &SockAddr) -> Result<SvcXprt<Self>>;

    /// Accepts one connection, after
    /// [`SvcHandle::set_connection`](super::SvcHandle::set_connection); one call at a time.
    fn accept(
        &self,
        accepting: Accepting<'_, Self::Connection>,
    ) -> Option<SvcXprt<Self::Connection>>;

    /// Stops listening: SUNRPC is about to drop the transport.
    fn detach(&self);
}

/// What carries Calls and Replies.
pub(crate) trait Connection: Types {
    /// Receives one Call, after [`SvcHandle::set_data`](super::SvcHandle::set_data). One call at a
    /// time, until [`Arriving::let_others_in`].
    fn receive(&self, rqst: Arriving<'_, Self>) -> Received;

    /// Notes that bytes of the Reply are an item that may be placed directly.
    fn result_payload(&self, call: &mut Self::Call, offset: u32, length: u32);

    /// Sends the Reply to a Call. Many at a time.
    fn send(&self, call: &mut Self::Call, reply: Reply<'_>) -> Result;

    /// A Call is done with, if there was one. Many at a time.
    fn release(&self, call: Option<Self::Call>);

    /// What reverse Calls are limited to.
    fn backchannel_limits(&self) -> BackchannelLimits;

    /// Sends a reverse Call; its Reply comes to [`Connection::receive`]. `rpciod`; may sleep.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    fn call_back(&self, xid: u32, message: &XdrBuf) -> Result<(), SendError>;

    /// Whether another Call should be taken on. Anywhere; must not sleep.
    fn has_room(&self) -> bool;

    /// Disconnects: SUNRPC is about to drop the transport.
    fn detach(&self);
}
