// SPDX-License-Identifier: GPL-2.0

//! Received messages at the client, and exposed Replies that it pulls.

use super::Action;
use super::Client;
use crate::marshal::consume;
use crate::marshal::Outcome;
use crate::marshal::Pending;
use crate::marshal::State;
use crate::queues::Received;
use crate::rng::Rng;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::inbound::RpcMsg;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::match_reply::locate;
use rpcrdma_core::engine::requester::match_reply::OfferedChunks;
use rpcrdma_core::engine::requester::match_reply::ReplyLocation;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::ReadList;
use rpcrdma_core::wire::Segment;

impl Client {
    /// Handles the oldest Receive completion.
    pub fn receive(&mut self) -> Action {
        let Some(Received { bytes, invalidated }) = self.queues.received.pop_front() else {
            return Action::Continue;
        };
        // The device has invalidated the handle, even if the message is dropped. If no pending RPC
        // has the handle, it belongs to a cancelled RPC, whose Reply is late.
        let mut foreign = false;
        if let Some(handle) = invalidated {
            for pending in self.pending.values_mut() {
                if pending.handles().any(|own| own == handle) {
                    pending.invalidated_remotely.push(handle);
                    foreign = !bytes.starts_with(&pending.rpc.xid.to_be_bytes());
                }
            }
        }
        let action = match from_server(&bytes, self.extensions) {
            Ok(FromServer::Reply(message)) => self.reply(&message, invalidated),
            Ok(FromServer::Error(refused)) => {
                if self.answered(refused.xid) {
                    self.credits(refused.credits);
                    let outcome = match self.pending.get(&refused.xid) {
                        Some(pending) if pending.offer == ReplyPlan::Pull => Outcome::Retry,
                        _ => Outcome::Refused,
                    };
                    self.end(refused.xid, outcome);
                }
                Action::Continue
            }
            Ok(FromServer::Empty { xid, credits }) => {
                if self.answered(xid) {
                    self.credits(credits);
                    self.end(xid, Outcome::Refused);
                }
                Action::Continue
            }
            Ok(FromServer::BackchannelCall(message)) => {
                self.backchannel.call(&message, self.honest_server);
                Action::Continue
            }
            Err(Response::Answer(error)) => {
                self.refuse(&error);
                Action::Continue
            }
            Err(Response::Drop) => Action::Continue,
        };
        self.queues.refill();
        match foreign {
            true => Action::Disconnect,
            false => action,
        }
    }

    /// Ends the wait of the Call with this XID for a message. Returns whether it was unanswered.
    fn answered(&mut self, xid: u32) -> bool {
        let orphan = self.orphans.iter().position(|orphan| *orphan == xid);
        let sent = self
            .pending
            .get(&xid)
            .is_some_and(|p| p.state == State::Sent);
        if let (Some(index), false) = (orphan, sent) {
            self.orphans.swap_remove(index);
        }
        let known = sent || orphan.is_some();
        self.unanswered -= u32::from(known);
        known
    }

    /// Applies a grant, and posts the Receives for it before the next Call is sent.
    fn credits(&mut self, credits: u32) {
        self.window.grant(credits, self.wanted);
        self.queues.needed = self.window.receives(self.backchannel.granted);
        self.queues.refill();
    }

    /// Begins the invalidation of the handles of an answered RPC.
    fn end(&mut self, xid: u32, outcome: Outcome) {
        if let Some(pending) = self.pending.get_mut(&xid) {
            if pending.state == State::Sent {
                pending.state = State::Fencing(outcome);
            }
        }
    }

    /// Handles a Reply. `handle` is the handle that its Send has invalidated.
    fn reply(&mut self, message: &RpcMsg<'_>, handle: Option<u32>) -> Action {
        let xid = message.xid;
        if let Some(pending) = self.pending.get(&xid) {
            if pending.state == State::Sent {
                let own = |handle| pending.handles().any(|exposed| exposed == handle);
                if !handle.is_none_or(own) {
                    return Action::Disconnect;
                }
                let offered = OfferedChunks {
                    write: pending.writes.iter().copied(),
                    reply: pending.reply_chunk.iter().copied(),
                };
                let room = pending.reply.len() as u32;
                let outcome = match locate(message, offered) {
                    Ok(ReplyLocation::Exposed {
                        length,
                        by_write: 0,
                    }) if length <= room => None,
                    // An exposed Reply that cannot be pulled.
                    _ if !message.chunks.reads.is_empty() => Some(Outcome::Refused),
                    Ok(arrived) => Some(Outcome::Reply(consume(pending, &arrived))),
                    // A Reply that does not match the Call. The Call stays unanswered.
                    Err(_) => return Action::Continue,
                };
                self.unanswered -= 1;
                self.credits(message.credits);
                match outcome {
                    Some(outcome) => {
                        self.end(xid, outcome);
                        self.done(xid, &message.chunks.reads);
                    }
                    None => self.pull(xid, &message.chunks.reads),
                }
                return Action::Continue;
            }
        }
        // The Reply to a Call of a cancelled RPC frees a credit.
        if self.answered(xid) {
            self.credits(message.credits);
        }
        self.done(xid, &message.chunks.reads);
        Action::Continue
    }

    /// Begins to pull an exposed Reply.
    fn pull(&mut self, xid: u32, reads: &ReadList<'_>) {
        let segments = reads.segments().map(|read| read.segment);
        if let Some(pending) = self.pending.get_mut(&xid) {
            pending.state = State::Pulling {
                exposed: segments.filter(|segment| !segment.is_empty()).collect(),
                arrived: 0,
            };
        }
    }

    /// Sends an RDMA_DONE for a Reply that will not be pulled, if it is exposed.
    fn done(&mut self, xid: u32, reads: &ReadList<'_>) {
        let first = reads.segments().next();
        if let Some(first) = first {
            self.send_done(xid, first.segment.handle);
        }
    }

    /// Sends an RDMA_DONE, With Invalidate of a handle of the Reply if that is negotiated.
    fn send_done(&mut self, xid: u32, handle: u32) {
        let mut buf = vec![0; 16];
        HeaderWriter::done(&mut buf, xid, self.wanted).expect("16 bytes suffice");
        let invalidated = self.agreement.remote_invalidation.then_some(handle);
        self.send_message(buf, invalidated);
    }

    /// XIDs of RPCs whose Replies are being pulled, each with the next segment to read.
    pub fn pulling(&self) -> Vec<(u32, Segment)> {
        let next = |pending: &Pending| match &pending.state {
            State::Pulling { exposed, .. } => Some((pending.rpc.xid, *exposed.last()?)),
            _ => None,
        };
        self.pending.values().filter_map(next).collect()
    }

    /// An RDMA Read of a Reply completes. The segments are read from the last to the first.
    pub fn pulled(&mut self, xid: u32, data: &[u8]) {
        let Some(pending) = self.pending.get_mut(&xid) else {
            return;
        };
        let State::Pulling { exposed, arrived } = &mut pending.state else {
            return;
        };
        let Some(segment) = exposed.pop() else {
            return;
        };
        let offset: u32 = exposed.iter().map(|segment| segment.length).sum();
        let start = offset as usize;
        pending.reply[start..start + data.len()].copy_from_slice(data);
        *arrived += data.len();
        if exposed.is_empty() {
            let stream = pending.reply[..*arrived].to_vec();
            pending.state = State::Fencing(Outcome::Reply(stream));
            self.send_done(xid, segment.handle);
        }
    }

    /// Refuses a backchannel Call.
    fn refuse(&mut self, error: &ErrorReply) {
        let mut buf = vec![0; 28];
        let len = error.encode(self.backchannel.granted, &mut buf);
        buf.truncate(len.expect("28 bytes suffice"));
        self.send_message(buf, None);
    }

    /// Replies to a backchannel Call.
    pub fn serve_backchannel(&mut self, rng: &mut Rng) {
        if let Some(bytes) = self.backchannel.reply(rng) {
            self.send_message(bytes, None);
        }
    }
}
