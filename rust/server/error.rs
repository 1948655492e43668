// SPDX-License-Identifier: GPL-2.0

//! What a client is told whose Call cannot be served.

use kernel::prelude::*;

use crate::{
    verbs::{
        Responder, //
        SendCtxt,
    },
    wire::ErrorReply, //
};

use super::{
    connection::Connection,
    traces, //
};

impl Connection {
    /// Tells the client that the chunks of a Call cannot be used.
    #[cold]
    pub(super) fn refuse(&self, xid: u32) {
        self.send_error(&ErrorReply::chunk(xid));
    }

    /// Tells the client that its Call cannot be served, or else closes the connection.
    #[cold]
    pub(super) fn send_error(&self, error: &ErrorReply) {
        let ctx = self.ep.context();
        let sent = ctx
            .sending()
            .message(&self.ep)
            .and_then(|message| self.post_error(message, error));
        if sent.is_err() {
            ctx.close();
        }
    }

    /// The same, by a message that is at hand.
    ///
    /// # Errors
    ///
    /// `EIO`: the connection is at its end.
    #[cold]
    pub(super) fn post_error(&self, mut message: SendCtxt, error: &ErrorReply) -> Result {
        let sending = self.ep.context().sending();
        traces::error(error);
        let back = match error.encode(self.credits, message.buffer_mut()) {
            Ok(bytes) => match self.post(message, bytes, None) {
                Ok(()) => return Ok(()),
                Err((back, _)) => back,
            },
            Err(_) => Some(message),
        };
        if let Some(message) = back {
            sending.put(&self.ep, message);
        }
        Err(EIO)
    }
}
