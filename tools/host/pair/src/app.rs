// SPDX-License-Identifier: GPL-2.0

//! The upper layer: Calls that say what Reply they want, and Replies that can be checked.

use crate::rng::Rng;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::responder::reply::Payload;

const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Beside the length of the Reply's head: nothing of the Reply may be reduced.
const PROTECTED: u32 = 1 << 31;

/// Bytes before the filling: XID, msg_type, and four lengths.
const FIXED: u32 = 24;

/// One RPC, as its consumer made it.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// Its XID.
    pub xid: u32,
    /// Its shape, for the transport.
    pub shape: CallShape,
    /// The Call: head, data, tail.
    pub call: Vec<u8>,
    /// Bytes of the Reply before its data item.
    head: u32,
    /// Bytes of the data item.
    item: u32,
    /// Bytes after it.
    tail: u32,
}

impl Rpc {
    /// Makes up an RPC whose Call and Reply are of any size that fits sixteen segments.
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
        // Estimates are upper bounds: the actual Reply is often shorter. Something after an item
        // needs an exact estimate of what is before it, for a consumer to find it.
        let item = if room == 0 { 0 } else { rng.range(0, room) };
        let short = rng.once_in(2);
        let (head, tail) = match short {
            true => (FIXED + 4 * rng.range(0, (reply.head - FIXED) / 4), 0),
            false => (reply.head, 4 * rng.range(0, (reply.tail - 4) / 4)),
        };
        let marked = head | if protected { PROTECTED } else { 0 };
        let mut bytes = words(&[xid, CALL, marked, item, tail, call.head]);
        let length = call.head + call.data + call.tail;
        bytes.extend(filling(xid, FIXED..length));
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

    /// The Reply the consumer must get.
    pub fn expected(&self) -> Vec<u8> {
        answer(self.xid, self.head, self.item, self.tail)
    }
}

/// Bytes of a head: mostly few.
fn any_head(rng: &mut Rng) -> u32 {
    let most = rng.pick(&[8, 40, 300]);
    FIXED + 4 * rng.range(0, most)
}

/// What the server's upper layer says to a Call.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The Reply, unreduced.
    pub reply: Vec<u8>,
    /// Its data item, if it is one that may be reduced.
    pub results: Vec<Payload>,
    /// Whether nothing of it may be reduced.
    pub protected: bool,
}

/// Serves an assembled Call; `None` if it makes no sense.
pub fn serve(call: &[u8]) -> Option<Answer> {
    let [xid, kind, marked, item, tail, call_head] = first(call)?;
    let head = marked & !PROTECTED;
    let longest = 1 << 16;
    if kind != CALL || head < FIXED || head > longest || item > longest || tail > longest {
        return None;
    }
    // Roundup is of no meaning; all else must be as it was made.
    let good = call
        .iter()
        .zip(filling(xid, 0..call.len() as u32))
        .enumerate();
    let mut wrong = good.filter(|(n, (is, should))| *n >= FIXED as usize && is != &should);
    let odd: Vec<usize> = wrong.by_ref().map(|(n, _)| n).take(4).collect();
    if odd.len() > 3 || odd.iter().any(|n| *n < call_head as usize || call[*n] != 0) {
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
        reply: answer(xid, head, item, tail),
        results,
        protected: marked != head,
    })
}

fn answer(xid: u32, head: u32, item: u32, tail: u32) -> Vec<u8> {
    let mut bytes = words(&[xid, REPLY, head, item, tail, 0]);
    bytes.extend(filling(!xid, FIXED..head + item));
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let length = bytes.len() as u32;
    bytes.extend(filling(!xid, length..length + tail));
    bytes
}

/// Byte `n` of a message is a function of its XID and `n`, and never zero.
fn filling(xid: u32, range: core::ops::Range<u32>) -> impl Iterator<Item = u8> {
    range.map(move |n| (xid.wrapping_mul(31).wrapping_add(n.wrapping_mul(7)) % 251 + 1) as u8)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn first(bytes: &[u8]) -> Option<[u32; 6]> {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(bytes.get(..24)?.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}
