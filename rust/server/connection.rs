// SPDX-License-Identifier: GPL-2.0

//! A connection as SUNRPC sees it: used by many threads, closed.

use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    }, //
};

use crate::{
    engine::{
        agreement::{
            Agreement,
            Extensions, //
        },
        responder::{
            reassembly::Bounds,
            reply::ReplyLimits, //
        }, //
    },
    sunrpc::{
        svc::{
            self,
            Arriving,
            BackchannelLimits,
            Received,
            Reply,
            SendError,
            SparePages, //
        },
        xdr::XdrBuf, //
    },
    verbs::{
        EndpointBox,
        Responder, //
    }, //
};

use super::{
    call::Buffer,
    ep::ServerEp,
    read_mrs::ReadMrBudget, //
};

/// A transport that is connected.
pub(super) struct Connection {
    pub(super) ep: EndpointBox<ServerEp>,
    /// What may be sent, and how.
    pub(super) agreement: Agreement,
    /// Extensions beyond RFC 8166 that were agreed on.
    pub(super) extensions: Extensions,
    /// What a Reply may be like.
    pub(super) reply_limits: ReplyLimits,
    /// What every message grants.
    pub(super) credits: u32,
    /// Reverse Calls that may be outstanding.
    pub(super) backchannel: u32,
    /// Entries of the Send Queue that a message takes at least.
    pub(super) share: u32,
    /// What may be pulled for one Call.
    pub(super) bounds: Bounds,
    /// iWARP regions that pulling takes.
    pub(super) read_mr_budget: ReadMrBudget,
    /// Whether the client answers RDMA Reads.
    pub(super) may_read: bool,
    /// Pages for those that travel with messages.
    pub(super) spare: Spare,
    /// Whether a file's pages have displaced those of the last Reply that was asked for any.
    pub(super) displaces: Atomic<bool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.spare.calls.release();
        self.spare.replies.release();
    }
}

/// Pages that were displaced in a request of any connection of a listener.
#[derive(Clone)]
pub(super) struct Spare {
    /// By those that a Call was pulled to.
    pub(super) calls: Arc<SparePages>,
    /// By those of a file that is read. Nothing was written to these.
    pub(super) replies: Arc<SparePages>,
}

impl Spare {
    /// None so far.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            calls: SparePages::new()?,
            replies: SparePages::new()?,
        })
    }
}

impl svc::Types for Connection {
    type Call = Buffer;
}

impl svc::Connection for Connection {
    fn receive(&self, rqst: Arriving<'_, Self>) -> Received {
        self.receive_call(rqst)
    }

    fn result_payload(&self, buffer: &mut Buffer, offset: u32, length: u32) {
        buffer.user_mut().call.add_result(offset, length);
    }

    fn send(&self, buffer: &mut Buffer, reply: Reply<'_>) -> Result {
        self.send_reply(buffer, reply)
    }

    fn release(&self, buffer: Option<Buffer>) {
        let ctx = self.ep.context();
        if let Some(buffer) = buffer {
            ctx.receives().recycle(buffer);
        }
        ctx.clear_finished(&self.ep);
    }

    fn backchannel_limits(&self) -> BackchannelLimits {
        BackchannelLimits {
            calls: self.backchannel,
            bytes: self.agreement.backchannel_payload(),
        }
    }

    fn call_back(&self, xid: u32, message: &XdrBuf) -> Result<(), SendError> {
        self.send_reverse_call(xid, message)
    }

    fn has_room(&self) -> bool {
        !self.ep.context().sending().queue().has_waiters()
    }

    fn detach(&self) {
        let ctx = self.ep.context();
        if ctx.is_established() {
            // An iWARP device that is asked to come to an end in its own time may lose what is on
            // its queues, and then it is never ours again.
            self.ep.set_qp_error();
        } else {
            // Nothing is on the Send Queue. The connection manager must not see an iWARP connection
            // close that it has not seen made.
            self.ep.disconnect();
        }
        // SUNRPC does not always close by way of `ServerEp::close`.
        ctx.sending().queue().close();
    }
}
