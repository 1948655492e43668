// SPDX-License-Identifier: GPL-2.0

//! RDMA_ERROR: the answer to a Call that cannot be served.
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_send_error()
//! C: svc_rdma_sendto.c, svc_rdma_send_error_msg()

use kernel::prelude::*;

use crate::{
    lib::close_reason::CloseReason,
    sunrpc::svc::{
        Received,
        Receiving, //
    },
    verbs::SendCtxt,
    wire::ErrorReply, //
};

use super::{
    call::Buffer,
    connection::Connection,
    post,
    traces, //
};

/// Sends ERR_CHUNK for the Call `xid`: its chunks cannot be used.
#[cold]
pub(super) fn refuse(conn: &Connection, xid: u32) {
    send_error(conn, &ErrorReply::chunk(xid));
}

/// Sends `error`, or else closes the connection.
#[cold]
pub(super) fn send_error(conn: &Connection, error: &ErrorReply) {
    let ctx = conn.ep.context();
    let sent = conn
        .ep
        .sender()
        .get(&conn.ep)
        .and_then(|ctxt| post_error(conn, ctxt, error));
    if sent.is_err() {
        ctx.close(CloseReason::NotPosted);
    }
}

/// Sends `error` in `ctxt`.
///
/// # Errors
///
/// `EIO`: the connection has ended.
#[cold]
pub(super) fn post_error(conn: &Connection, mut ctxt: SendCtxt, error: &ErrorReply) -> Result {
    traces::error(error);
    let credits = conn.ep.context().recv_queue.granted();
    let returned = match error.encode(credits, ctxt.buffer_mut()) {
        Ok(len) => match post::post(conn, ctxt, len, None) {
            Ok(()) => return Ok(()),
            Err((returned, _)) => returned,
        },
        Err(_) => Some(ctxt),
    };
    if let Some(ctxt) = returned {
        conn.ep.sender().put(&conn.ep, ctxt);
    }
    Err(EIO)
}

/// Reuses the buffer of a message that is not delivered.
pub(super) fn drop_call(
    conn: &Connection,
    rqst: Receiving<'_, Connection>,
    buffer: Buffer,
) -> Received {
    conn.ep.context().recv_queue.put(buffer);
    rqst.leave_empty()
}

/// Sends ERR_CHUNK for the Call `xid` in `buffer`, and drops the Call.
#[cold]
pub(super) fn refuse_call(
    conn: &Connection,
    rqst: Receiving<'_, Connection>,
    buffer: Buffer,
    xid: u32,
) -> Received {
    refuse(conn, xid);
    drop_call(conn, rqst, buffer)
}
