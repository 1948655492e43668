// SPDX-License-Identifier: GPL-2.0

//! What becomes of an RPC, and what a play has seen of them.

use core::cell::Cell;
use std::rc::Rc;

use kernel::sched::{self, pick};

use super::rpc::Rpc;
use crate::bindings::rpc::Call;

/// What a play has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The steps.
    pub steps: u64,
    /// Replies that were checked.
    pub replies: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Connections.
    pub connections: u64,
    /// Allocations that have failed.
    pub failed: u64,
    /// What hostile peers have done.
    pub hostile: u64,
    /// Replies to backchannel Calls.
    pub backward: u64,
    /// RPCs that a signal has killed.
    pub killed: u64,
    /// Replies that clients have pulled, by their files.
    pub pulled: u64,
}

impl Seen {
    /// The numbers, with their names.
    pub fn numbers(&self) -> [(&'static str, u64); 9] {
        [
            ("steps", self.steps),
            ("replies", self.replies),
            ("refused", self.refused),
            ("connections", self.connections),
            ("failed_allocations", self.failed),
            ("hostile_acts", self.hostile),
            ("backward", self.backward),
            ("killed", self.killed),
            ("pulled", self.pulled),
        ]
    }
}

/// What may become of an RPC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct May {
    pub(crate) fail: bool,
}

/// An RPC of this shape, for SUNRPC.
pub(crate) fn to_call(shape: Rpc, may: May, replies: &Rc<Cell<u64>>) -> Call {
    let replies = replies.clone();
    let (head, data, tail) = shape.reply_parts();
    Call {
        encode: Box::new(move |xid, attempt| shape.with_xid(xid).call_parts(attempt)),
        is_write: shape.is_eligible(),
        // A consumer that reads to the end of a file gets less than it asks for.
        room: [
            head.len(),
            data.len() + pick(&[0, 0, 4, 500, 5000]) as usize,
            tail.len(),
        ],
        is_read: shape.is_eligible(),
        may_fail: may.fail,
        decode: Box::new(move |xid, reply| {
            let rpc = shape.with_xid(xid);
            let expected = rpc.reply();
            if reply != expected {
                let at = reply.iter().zip(&expected).position(|(a, b)| a != b);
                sched::fail(format_args!(
                    "the Reply to {rpc:?} has {} bytes, {} expected, the first other one at {at:?}",
                    reply.len(),
                    expected.len()
                ));
            }
            replies.set(replies.get() + 1);
        }),
    }
}
