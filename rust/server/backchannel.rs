// SPDX-License-Identifier: GPL-2.0

//! Calls that the service makes of its client, over the client's connection (RFC 8167).
//!
//! They are short: each travels in one message without chunks, and so does its Reply. Their credits
//! are those of the reverse direction alone.

use kernel::prelude::*;

use crate::{
    engine::credit::Window,
    sunrpc::{
        svc::{
            Answer,
            Receiving,
            SendError, //
        },
        xdr::XdrBuf, //
    },
    verbs::{
        Responder, //
        SendCtxt,
    },
    wire::HeaderWriter, //
};

use super::connection::Connection;

impl Connection {
    /// Sends a reverse Call.
    pub(super) fn send_reverse_call(&self, xid: u32, call: &XdrBuf) -> Result<(), SendError> {
        let ctx = self.ep.context();
        let sending = ctx.sending();
        let mut message = match sending.message(&self.ep) {
            Ok(message) => message,
            Err(ENOMEM) => return Err(SendError::NoBuffers),
            Err(_) => return Err(SendError::NotConnected),
        };
        let Some(bytes) = self.write_backchannel(&mut message, xid, call) else {
            sending.put(&self.ep, message);
            return Err(SendError::TooBig);
        };
        self.post(message, bytes, None).map_err(|(message, _)| {
            if let Some(message) = message {
                sending.put(&self.ep, message);
            }
            ctx.close();
            SendError::NotConnected
        })
    }

    /// Writes header and Call; returns their length, or `None` if they do not fit. The buffer is as
    /// long as the longest message that may be sent.
    fn write_backchannel(&self, message: &mut SendCtxt, xid: u32, call: &XdrBuf) -> Option<usize> {
        let buffer = message.buffer_mut();
        let mut end = HeaderWriter::plain(buffer, xid, self.backchannel).ok()?;
        end += call.copy_head(buffer.get_mut(end..)?)?;
        end += call.copy_pages(buffer.get_mut(end..)?)?;
        end += call.copy_tail(0, buffer.get_mut(end..)?)?;
        Some(end)
    }

    /// Takes the answer to a reverse Call, and the credits that came with it; `false` if there is
    /// no such Call, and thus nothing to say what these credits are for.
    pub(super) fn backchannel_answer(
        &self,
        rqst: &Receiving<'_, Self>,
        xid: u32,
        credits: u32,
        answer: Answer<'_>,
    ) -> bool {
        let mut window = Window::FRESH;
        window.grant(credits, self.backchannel);
        rqst.answer_backchannel(xid, window.granted(), answer)
    }
}
