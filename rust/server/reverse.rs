// SPDX-License-Identifier: GPL-2.0

//! Calls that the service makes of its client, over the client's connection (RFC 8167).
//!
//! They are short: each travels in one message without chunks, and so does its Reply.

use super::connection::Connection;
use crate::sunrpc::svc::CallError;
use crate::sunrpc::svc::REVERSE_SLOTS;
use crate::sunrpc::xdr::XdrBuf;
use crate::verbs::Message;
use crate::verbs::Responder;
use crate::wire::HeaderWriter;

impl Connection {
    /// Sends a reverse Call.
    pub(super) fn send_reverse_call(
        &self,
        xid: u32,
        call: &XdrBuf,
    ) -> core::result::Result<(), CallError> {
        let channel = self.ep.context();
        if channel.is_closing() {
            return Err(CallError::NotConnected);
        }
        let sending = channel.sending();
        let mut message = sending.message(&self.ep).map_err(|_| self.lost())?;
        let Some(octets) = write(&mut message, xid, call) else {
            sending.discard(&self.ep, message);
            return Err(CallError::TooBig);
        };
        self.post(message, octets, None).map_err(|(message, _)| {
            if let Some(message) = message {
                sending.discard(&self.ep, message);
            }
            self.lost()
        })
    }

    fn lost(&self) -> CallError {
        self.ep.context().close();
        CallError::NotConnected
    }
}

/// Writes header and Call; returns their length, or `None` if they do not fit. The buffer is as long as
/// the longest message that may be sent.
fn write(message: &mut Message, xid: u32, call: &XdrBuf) -> Option<usize> {
    let buffer = message.buffer_mut();
    let mut end = HeaderWriter::plain(buffer, xid, REVERSE_SLOTS).ok()?;
    end += call.copy_head(buffer.get_mut(end..)?)?;
    end += call.copy_pages(buffer.get_mut(end..)?)?;
    end += call.copy_tail(0, buffer.get_mut(end..)?)?;
    Some(end)
}
