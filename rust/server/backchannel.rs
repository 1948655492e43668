// SPDX-License-Identifier: GPL-2.0

//! The reverse direction (RFC 8167): Calls to the client, and their Replies.
//!
//! A Call travels in one message without chunks, and so does its Reply. The credits are those of
//! the reverse direction alone.
//!
//! C: svc_rdma_backchannel.c, svc_rdma_bc_sendto(), svc_rdma_handle_bc_reply()

use kernel::prelude::*;

use crate::{
    engine::credit::Window,
    lib::close_reason::CloseReason,
    sunrpc::{
        svc::{
            BackchannelAnswer,
            Grant,
            Receiving,
            SendError, //
        },
        xdr::XdrBuf, //
    },
    verbs::SendCtxt,
    wire::HeaderWriter, //
};

use super::{
    connection::Connection,
    post, //
};

/// Sends a Call to the client.
pub(super) fn send_call(conn: &Connection, xid: u32, call: &XdrBuf) -> Result<(), SendError> {
    let ctx = conn.ep.context();
    let mut ctxt = match conn.ep.sender().get(&conn.ep) {
        Ok(ctxt) => ctxt,
        Err(ENOMEM) => return Err(SendError::NoBuffers),
        Err(_) => return Err(SendError::NotConnected),
    };
    let Some(len) = write_call(&mut ctxt, xid, conn.backchannel, call) else {
        conn.ep.sender().put(&conn.ep, ctxt);
        return Err(SendError::TooBig);
    };
    ctx.counters.backchannel_calls.add(1);
    post::post(conn, ctxt, len, None).map_err(|(returned, _)| {
        if let Some(ctxt) = returned {
            conn.ep.sender().put(&conn.ep, ctxt);
        }
        ctx.close(CloseReason::PostFailed);
        SendError::NotConnected
    })
}

/// Writes header and Call to `ctxt`; returns their length, or `None` if they do not fit. The buffer
/// is as long as the longest message that may be sent.
fn write_call(ctxt: &mut SendCtxt, xid: u32, credits: u32, call: &XdrBuf) -> Option<usize> {
    let buf = ctxt.buffer_mut();
    let mut end = HeaderWriter::plain(buf, xid, credits).ok()?;
    end += call.copy_head(buf.get_mut(end..)?)?;
    end += call.copy_pages(buf.get_mut(end..)?)?;
    end += call.copy_tail(0, buf.get_mut(end..)?)?;
    Some(end)
}

/// Hands the answer to a Call, and its credits, to SUNRPC. The answer is message number `message`
/// of the connection. `false` if no Call `xid` is outstanding: then the credits are ignored as
/// well, because nothing tells what they are for.
pub(super) fn receive_reply(
    conn: &Connection,
    rqst: &Receiving<'_, Connection>,
    message: u64,
    xid: u32,
    credits: u32,
    answer: BackchannelAnswer<'_>,
) -> bool {
    let mut window = Window::FRESH;
    window.grant(credits, conn.backchannel);
    let grant = Grant {
        window: window.granted(),
        message,
    };
    rqst.complete_backchannel(xid, grant, answer)
}
