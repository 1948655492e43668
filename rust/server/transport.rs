// SPDX-License-Identifier: GPL-2.0

//! Calls from SUNRPC to a connection.
//!
//! C: svc_rdma_transport.c, svc_rdma_detach(), svc_rdma_has_wspace()
//! C: svc_rdma_recvfrom.c, svc_rdma_release_ctxt()

use core::fmt;

use kernel::prelude::*;

use crate::{
    debugfs::Lines,
    lib::close_reason::CloseReason,
    sunrpc::{
        svc::{
            self,
            Arriving,
            BackchannelLimits,
            Received,
            Reply,
            SendError,
            StateFile, //
        },
        xdr::XdrBuf, //
    }, //
};

use super::{
    backchannel,
    call::{
        Buffer,
        BufferMut, //
    },
    connection::Connection,
    receive,
    reply,
    state, //
};

impl svc::Types for Connection {
    type Call = Buffer;
}

impl svc::Connection for Connection {
    fn receive(&self, rqst: Arriving<'_, Self>) -> Received {
        receive::receive_call(self, rqst)
    }

    fn result_payload(&self, mut buffer: BufferMut<'_>, offset: u32, length: u32) {
        buffer.user_mut().call.add_result(offset, length);
    }

    fn send(&self, mut buffer: BufferMut<'_>, reply: Reply<'_>) -> Result {
        reply::send_reply(self, &mut buffer, reply)
    }

    fn release(&self, buffer: Option<Buffer>) {
        let ctx = self.ep.context();
        if let Some(buffer) = buffer {
            ctx.recv_queue.put(buffer);
        }
        ctx.clear_finished(&self.ep);
    }

    fn backchannel_limits(&self) -> BackchannelLimits {
        BackchannelLimits {
            calls: self.backchannel,
            bytes: self.agreement.backchannel_payload(),
        }
    }

    fn send_backchannel(&self, xid: u32, message: &XdrBuf) -> Result<(), SendError> {
        backchannel::send_call(self, xid, message)
    }

    fn has_wspace(&self) -> bool {
        // A thread has to check deadlines even while chains wait. It then takes no Call. The order
        // matters: the timer needs the barrier of `is_empty_now` as well. Read nothing but the
        // endpoint, see `Connection`.
        let ctx = self.ep.context();
        ctx.send_backlog.is_empty_now() || ctx.timer.has_fired()
    }

    fn state_file(&self) -> &StateFile {
        &self.ep.context().file
    }

    fn show(&self, lines: &mut Lines) -> fmt::Result {
        state::show(self, lines)
    }

    fn detach(&self) {
        let ctx = self.ep.context();
        // A flushed Receive may complete before the WR whose status tells why.
        if ctx.close_reason().is_none() {
            let reason = ctx.xprt().and_then(|xprt| xprt.closed().take());
            ctx.note_close(reason.unwrap_or(CloseReason::Nfsd));
        }
        if ctx.is_established() {
            // An iWARP device that is asked for a graceful disconnect may lose posted WRs, which
            // then never complete.
            self.ep.set_qp_error();
        } else if !self.waits_for_peer() {
            // The Send Queue is empty.
            self.ep.disconnect();
        }
        // Otherwise the drop disconnects. The iWARP CM must not see the queue pair of a connection
        // in error that it has not seen established: it would call `BUG()`.
    }

    fn waits_for_peer(&self) -> bool {
        self.ep.waits_for_established() && !self.ep.context().is_established()
    }
}
