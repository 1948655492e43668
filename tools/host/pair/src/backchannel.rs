// SPDX-License-Identifier: GPL-2.0

//! The reverse direction: Calls of the listening end, and what the connecting end says to them.

use crate::rng::Rng;
use rpcrdma_core::engine::credit::Window;
use rpcrdma_core::engine::inbound::Refused;
use rpcrdma_core::engine::inbound::RpcMsg;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::RdmaError;
use rpcrdma_core::wire::ReadSegment;
use rpcrdma_core::wire::Segment;

const CALL: u32 = 0;
const REPLY: u32 = 1;

/// A header without chunks.
fn plain(xid: u32, credits: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let length = HeaderWriter::plain(&mut bytes, xid, credits);
    bytes.truncate(length.expect("64 bytes suffice"));
    bytes
}

/// How a reverse Call is conveyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conveyed {
    /// Inline, as it must be.
    Short,
    /// With a Read chunk beside it.
    Chunk,
    /// Wholly in a Read chunk.
    Long,
    /// In another version of the protocol.
    Version,
}

impl Conveyed {
    /// What the client says to such a Call, if it does not serve it.
    fn refusal(self) -> Option<RdmaError> {
        match self {
            Self::Short => None,
            Self::Chunk | Self::Long => Some(RdmaError::Chunk),
            Self::Version => Some(RdmaError::Vers { low: 1, high: 1 }),
        }
    }
}

/// A reverse Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    xid: u32,
    form: Conveyed,
}

impl Call {
    fn encode(&self, credits: u32) -> Vec<u8> {
        let body = [self.xid, CALL, 2];
        let body = body.iter().flat_map(|word| word.to_be_bytes());
        let segment = Segment {
            handle: 77,
            length: 12,
            offset: 0,
        };
        let chunk = |nomsg: bool| {
            let mut bytes = vec![0; 128];
            let mut header = match nomsg {
                true => HeaderWriter::nomsg(&mut bytes, self.xid, credits)?,
                false => HeaderWriter::msg(&mut bytes, self.xid, credits)?,
            };
            let position = if nomsg { 0 } else { 12 };
            header.read_segment(ReadSegment { position, segment })?;
            let length = header.no_more_reads()?.no_more_writes()?.no_reply_chunk()?;
            bytes.truncate(length);
            Ok::<_, rpcrdma_core::wire::Overflow>(bytes)
        };
        let mut bytes = match self.form {
            Conveyed::Short | Conveyed::Version => plain(self.xid, credits),
            Conveyed::Chunk | Conveyed::Long => {
                chunk(self.form == Conveyed::Long).expect("128 bytes suffice")
            }
        };
        if self.form == Conveyed::Version {
            bytes[4..8].copy_from_slice(&7_u32.to_be_bytes());
        }
        if self.form != Conveyed::Long {
            bytes.extend(body);
        }
        bytes
    }
}

/// The end that calls.
#[derive(Debug)]
pub struct Caller {
    window: Window,
    /// Credits that every Call asks for.
    wanted: u32,
    /// Calls to be sent, on this connection or the next.
    queued: Vec<Call>,
    /// Calls that have not been answered.
    outstanding: Vec<Call>,
    /// Calls that were served.
    pub done: u32,
    /// Calls that were refused.
    pub refused: u32,
}

impl Caller {
    pub(crate) fn new(wanted: u32) -> Self {
        Self {
            window: Window::FRESH,
            wanted,
            queued: Vec::new(),
            outstanding: Vec::new(),
            done: 0,
            refused: 0,
        }
    }

    /// Receives that the Replies to as many Calls as may be outstanding need.
    pub(crate) fn receives(&self) -> u32 {
        self.wanted
    }

    /// Whether all Calls have been answered.
    pub(crate) fn quiet(&self) -> bool {
        self.queued.is_empty() && self.outstanding.is_empty()
    }

    /// Will call, unless a Call of this XID has not been answered.
    pub(crate) fn call(&mut self, xid: u32, form: Conveyed) -> bool {
        let mut known = self.queued.iter().chain(&self.outstanding);
        let fresh = known.all(|call| call.xid != xid);
        if fresh {
            self.queued.push(Call { xid, form });
        }
        fresh
    }

    /// The next message, if there is a credit for it. Where Replies may be pulled, what is wholly
    /// in a Read chunk is one of those, so that no Call can be.
    pub(crate) fn next(&mut self, pulled_replies: bool) -> Option<Vec<u8>> {
        if self.window.granted() as usize <= self.outstanding.len() {
            return None;
        }
        let mut call = self.queued.pop()?;
        if pulled_replies && call.form == Conveyed::Long {
            call.form = Conveyed::Chunk;
        }
        self.outstanding.push(call);
        assert!(self.outstanding.len() as u32 <= self.window.granted());
        Some(call.encode(self.wanted))
    }

    /// A Reply; one to no Call says nothing about credits, either.
    pub(crate) fn reply(&mut self, message: &RpcMsg<'_>, honest: bool) {
        if let Some(call) = self.end(message.xid, message.credits) {
            assert!(!honest || call.form == Conveyed::Short, "served: {call:?}");
            self.done += 1;
        }
    }

    /// An error; the same goes for it.
    pub(crate) fn error(&mut self, refused: &Refused, honest: bool) {
        if let Some(call) = self.end(refused.xid, refused.credits) {
            assert!(!honest || call.form.refusal() == Some(refused.error));
            self.refused += 1;
        }
    }

    fn end(&mut self, xid: u32, credits: u32) -> Option<Call> {
        let index = self.outstanding.iter().position(|call| call.xid == xid)?;
        self.window.grant(credits, self.wanted);
        Some(self.outstanding.swap_remove(index))
    }

    /// The connection is lost: what was not answered is sent again on the next.
    pub(crate) fn reconnect(&mut self) {
        self.window = Window::FRESH;
        self.queued.append(&mut self.outstanding);
    }
}

/// The end that answers.
#[derive(Debug)]
pub struct Service {
    /// Calls that may be outstanding.
    pub(crate) granted: u32,
    /// XIDs of Calls that are being served.
    held: Vec<u32>,
}

impl Service {
    pub(crate) fn new(granted: u32) -> Self {
        Self {
            granted,
            held: Vec::new(),
        }
    }

    pub(crate) fn quiet(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes a Call; what is beyond the grant is dropped.
    pub(crate) fn call(&mut self, message: &RpcMsg<'_>, honest: bool) {
        if (self.held.len() as u32) < self.granted {
            self.held.push(message.xid);
        } else {
            assert!(!honest, "more reverse Calls than were granted");
        }
    }

    /// Serves any of the Calls.
    pub(crate) fn reply(&mut self, rng: &mut Rng) -> Option<Vec<u8>> {
        if self.held.is_empty() {
            return None;
        }
        let index = rng.below(self.held.len());
        let xid = self.held.swap_remove(index);
        // Grants change at any time.
        let mut bytes = plain(xid, rng.range(1, self.granted));
        bytes.extend([xid, REPLY].iter().flat_map(|word| word.to_be_bytes()));
        Some(bytes)
    }
}
