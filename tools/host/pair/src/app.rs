// SPDX-License-Identifier: GPL-2.0

//! The upper layer. A Call has the parameters of its Reply, so the client can check the Reply.

use crate::rng::Rng;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::responder::reply::Payload;

const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Flag in the word with the length of the Reply's head: the Reply may not be reduced.
const PROTECTED: u32 = 1 << 31;

/// Bytes before the generated content: XID, `msg_type`, and four lengths.
const FIXED: u32 = 24;

/// An RPC of the consumer.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// The XID.
    pub xid: u32,
    /// The shape, for the engine.
    pub shape: CallShape,
    /// The Call: head, data, tail.
    pub call: Vec<u8>,
    /// Bytes of the Reply before the data item.
    head: u32,
    /// Bytes in the data item of the Reply.
    item: u32,
    /// Bytes of the Reply after the data item.
    tail: u32,
}

impl Rpc {
    /// Generates an RPC whose Call and Reply each fit a chunk of sixteen segments.
    pub fn new(rng: &mut Rng, xid: u32) -> Self {
        let protected = rng.once_in(8);
        let data = match rng.below(3) {
            0 => 0,
            1 => rng.range(1, 900),
            _ => rng.range(900, 6000),
        };
        let call = XdrLens {
            head: any_head(rng),
            data,
            page_offset: rng.range(0, 700),
            tail: data.wrapping_neg() % 4 + 4 * rng.range(0, 20),
        };
        let room = match rng.below(3) {
            0 => 0,
            1 => rng.range(1, 900),
            _ => rng.range(900, 6000),
        };
        let reply = XdrLens {
            head: any_head(rng),
            data: room,
            page_offset: rng.range(0, 700),
            tail: 4 + 4 * rng.range(0, 20),
        };
        // The room for a Reply is an upper bound, and the Reply is often shorter. If bytes follow
        // the data item, the estimate of the head must be exact, for the consumer to find them.
        let item = if room == 0 { 0 } else { rng.range(0, room) };
        let short = rng.once_in(2);
        let (head, tail) = match short {
            true => (FIXED + 4 * rng.range(0, (reply.head - FIXED) / 4), 0),
            false => (reply.head, 4 * rng.range(0, (reply.tail - 4) / 4)),
        };
        let marked = head | if protected { PROTECTED } else { 0 };
        let mut bytes = words(&[xid, CALL, marked, item, tail, call.head]);
        let len = call.head + call.data + call.tail;
        bytes.extend(content(xid, FIXED..len));
        let pad = call.head + call.data;
        for n in pad..pad + data.wrapping_neg() % 4 {
            bytes[n as usize] = 0;
        }
        Self {
            xid,
            shape: CallShape {
                call,
                call_eligible: rng.once_in(2),
                reply,
                reply_eligible: room > 0 && rng.once_in(2),
                protected,
                long_reply: false,
            },
            call: bytes,
            head,
            item,
            tail,
        }
    }

    /// The Reply that the consumer must get.
    pub fn expected(&self) -> Vec<u8> {
        reply(self.xid, self.head, self.item, self.tail)
    }
}

/// A random length of a head, often short.
fn any_head(rng: &mut Rng) -> u32 {
    let most = rng.pick(&[8, 40, 300]);
    FIXED + 4 * rng.range(0, most)
}

/// The Reply of the server's upper layer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The unreduced Reply.
    pub reply: Vec<u8>,
    /// The data item, if there is one.
    pub results: Vec<Payload>,
    /// The Reply may not be reduced.
    pub protected: bool,
}

/// Serves a reassembled Call. `None` if the Call is invalid.
pub fn serve(call: &[u8]) -> Option<Answer> {
    let [xid, kind, marked, item, tail, call_head] = fixed_words(call)?;
    let head = marked & !PROTECTED;
    let longest = 1 << 16;
    if kind != CALL || head < FIXED || head > longest || item > longest || tail > longest {
        return None;
    }
    // All bytes must be as generated, except up to three bytes of roundup, which are zero.
    let bytes = call
        .iter()
        .zip(content(xid, 0..call.len() as u32))
        .enumerate();
    let mut wrong = bytes.filter(|(n, (is, should))| *n >= FIXED as usize && is != &should);
    let roundup: Vec<usize> = wrong.by_ref().map(|(n, _)| n).take(4).collect();
    if roundup.len() > 3
        || roundup
            .iter()
            .any(|n| *n < call_head as usize || call[*n] != 0)
    {
        return None;
    }
    let results = match item {
        0 => Vec::new(),
        length => vec![Payload {
            offset: head,
            length,
        }],
    };
    Some(Answer {
        reply: reply(xid, head, item, tail),
        results,
        protected: marked != head,
    })
}

/// A Reply with these lengths of head, data item and tail.
fn reply(xid: u32, head: u32, item: u32, tail: u32) -> Vec<u8> {
    let mut bytes = words(&[xid, REPLY, head, item, tail, 0]);
    bytes.extend(content(!xid, FIXED..head + item));
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let len = bytes.len() as u32;
    bytes.extend(content(!xid, len..len + tail));
    bytes
}

/// Generated content: byte `n` of a message is a function of its XID and `n`, and not zero.
fn content(xid: u32, range: core::ops::Range<u32>) -> impl Iterator<Item = u8> {
    range.map(move |n| (xid.wrapping_mul(31).wrapping_add(n.wrapping_mul(7)) % 251 + 1) as u8)
}

/// Words in big-endian order.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The fixed words of a message.
fn fixed_words(bytes: &[u8]) -> Option<[u32; 6]> {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(bytes.get(..24)?.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}
