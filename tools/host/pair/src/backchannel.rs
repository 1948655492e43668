// SPDX-License-Identifier: GPL-2.0

//! The backchannel: Calls of the server, and Replies of the client.

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
    let mut buf = vec![0; 64];
    let len = HeaderWriter::plain(&mut buf, xid, credits);
    buf.truncate(len.expect("64 bytes suffice"));
    buf
}

/// The form of a backchannel Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallForm {
    /// Inline, the only legal form.
    Inline,
    /// With a Read chunk.
    ReadChunk,
    /// As a Long Call.
    Long,
    /// In another version of the protocol.
    Version,
}

impl CallForm {
    /// The error with which the client refuses the Call. `None` if it serves the Call.
    fn refusal(self) -> Option<RdmaError> {
        match self {
            Self::Inline => None,
            Self::ReadChunk | Self::Long => Some(RdmaError::Chunk),
            Self::Version => Some(RdmaError::Vers { low: 1, high: 1 }),
        }
    }
}

/// A backchannel Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    xid: u32,
    form: CallForm,
}

impl Call {
    /// Encodes the Call.
    fn encode(&self, credits: u32) -> Vec<u8> {
        let body = [self.xid, CALL, 2];
        let body = body.iter().flat_map(|word| word.to_be_bytes());
        let segment = Segment {
            handle: 77,
            length: 12,
            offset: 0,
        };
        let chunk = |nomsg: bool| {
            let mut buf = vec![0; 128];
            let mut header = match nomsg {
                true => HeaderWriter::nomsg(&mut buf, self.xid, credits)?,
                false => HeaderWriter::msg(&mut buf, self.xid, credits)?,
            };
            let position = if nomsg { 0 } else { 12 };
            header.read_segment(ReadSegment { position, segment })?;
            let len = header.no_more_reads()?.no_more_writes()?.no_reply_chunk()?;
            buf.truncate(len);
            Ok::<_, rpcrdma_core::wire::Overflow>(buf)
        };
        let mut bytes = match self.form {
            CallForm::Inline | CallForm::Version => plain(self.xid, credits),
            CallForm::ReadChunk | CallForm::Long => {
                chunk(self.form == CallForm::Long).expect("128 bytes suffice")
            }
        };
        if self.form == CallForm::Version {
            bytes[4..8].copy_from_slice(&7_u32.to_be_bytes());
        }
        if self.form != CallForm::Long {
            bytes.extend(body);
        }
        bytes
    }
}

/// The server's side of the backchannel, which sends Calls.
#[derive(Debug)]
pub struct Caller {
    window: Window,
    /// Credits that every Call requests.
    wanted: u32,
    /// Calls to be sent on this connection or a later one.
    queued: Vec<Call>,
    /// Calls that have not been answered.
    outstanding: Vec<Call>,
    /// Number of Calls that the client has served.
    pub done: u32,
    /// Number of Calls that the client has refused.
    pub refused: u32,
}

impl Caller {
    /// A caller without Calls.
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

    /// Number of Receives for Replies.
    pub(crate) fn receives(&self) -> u32 {
        self.wanted
    }

    /// Whether all Calls have been answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.outstanding.is_empty()
    }

    /// Queues a Call, unless a Call with this XID is queued or outstanding. Returns whether it did.
    pub(crate) fn call(&mut self, xid: u32, form: CallForm) -> bool {
        let mut known = self.queued.iter().chain(&self.outstanding);
        let fresh = known.all(|call| call.xid != xid);
        if fresh {
            self.queued.push(Call { xid, form });
        }
        fresh
    }

    /// The next Call to send, if there is a credit for it.
    ///
    /// With pulled Replies, the client takes a Long Call for a Reply, so it has a Read chunk
    /// instead.
    pub(crate) fn next(&mut self, pulled_replies: bool) -> Option<Vec<u8>> {
        if self.window.granted() as usize <= self.outstanding.len() {
            return None;
        }
        let mut call = self.queued.pop()?;
        if pulled_replies && call.form == CallForm::Long {
            call.form = CallForm::ReadChunk;
        }
        self.outstanding.push(call);
        assert!(self.outstanding.len() as u32 <= self.window.granted());
        Some(call.encode(self.wanted))
    }

    /// Handles a Reply. The credits of a Reply with an unknown XID are ignored.
    pub(crate) fn reply(&mut self, message: &RpcMsg<'_>, honest: bool) {
        if let Some(call) = self.end(message.xid, message.credits) {
            assert!(
                !honest || call.form == CallForm::Inline,
                "an illegal Call is served: {call:?}"
            );
            self.done += 1;
        }
    }

    /// Handles an RDMA_ERROR. The credits of an error with an unknown XID are ignored.
    pub(crate) fn error(&mut self, refused: &Refused, honest: bool) {
        if let Some(call) = self.end(refused.xid, refused.credits) {
            assert!(!honest || call.form.refusal() == Some(refused.error));
            self.refused += 1;
        }
    }

    /// Ends the Call with this XID, if it is outstanding.
    fn end(&mut self, xid: u32, credits: u32) -> Option<Call> {
        let index = self.outstanding.iter().position(|call| call.xid == xid)?;
        self.window.grant(credits, self.wanted);
        Some(self.outstanding.swap_remove(index))
    }

    /// Handles a disconnect: queues outstanding Calls again.
    pub(crate) fn reconnect(&mut self) {
        self.window = Window::FRESH;
        self.queued.append(&mut self.outstanding);
    }
}

/// The client's side of the backchannel, which serves Calls.
#[derive(Debug)]
pub struct Service {
    /// Credits granted.
    pub(crate) granted: u32,
    /// XIDs of Calls that are being served.
    serving: Vec<u32>,
}

impl Service {
    /// A service without Calls.
    pub(crate) fn new(granted: u32) -> Self {
        Self {
            granted,
            serving: Vec::new(),
        }
    }

    /// Whether no Call is being served.
    pub(crate) fn is_idle(&self) -> bool {
        self.serving.is_empty()
    }

    /// Accepts a Call, or drops it if it exceeds the grant.
    pub(crate) fn call(&mut self, message: &RpcMsg<'_>, honest: bool) {
        if (self.serving.len() as u32) < self.granted {
            self.serving.push(message.xid);
        } else {
            assert!(!honest, "backchannel Calls exceed the grant");
        }
    }

    /// Replies to a random Call.
    pub(crate) fn reply(&mut self, rng: &mut Rng) -> Option<Vec<u8>> {
        if self.serving.is_empty() {
            return None;
        }
        let index = rng.below(self.serving.len());
        let xid = self.serving.swap_remove(index);
        // The grant may change at any time.
        let mut bytes = plain(xid, rng.range(1, self.granted));
        bytes.extend([xid, REPLY].iter().flat_map(|word| word.to_be_bytes()));
        Some(bytes)
    }
}
