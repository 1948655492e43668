// SPDX-License-Identifier: GPL-2.0

//! Generators of messages.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::wire::Body;
use rpcrdma_core::wire::Header;
use rpcrdma_core::wire::ReadSegment;
use rpcrdma_core::wire::Segment;

/// The content of a message. [`RpcMsg::bytes`] encodes it without the encoder under test.
#[derive(Clone, Debug)]
pub(crate) struct RpcMsg {
    xid: u32,
    credits: u32,
    reads: Vec<ReadSegment>,
    writes: Vec<Vec<Segment>>,
    reply: Option<Vec<Segment>>,
    /// `None` for RDMA_NOMSG.
    payload: Option<Vec<u8>>,
}

impl RpcMsg {
    /// The encoded message.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let procedure = u32::from(self.payload.is_none());
        let mut words = vec![self.xid, 1, self.credits, procedure];
        let hloo = |words: &mut Vec<u32>, s: &Segment| {
            words.extend([s.handle, s.length, (s.offset >> 32) as u32, s.offset as u32]);
        };
        for read in &self.reads {
            words.extend([1, read.position]);
            hloo(&mut words, &read.segment);
        }
        words.push(0);
        for chunk in &self.writes {
            words.extend([1, chunk.len() as u32]);
            chunk.iter().for_each(|segment| hloo(&mut words, segment));
        }
        words.push(0);
        match &self.reply {
            Some(chunk) => {
                words.extend([1, chunk.len() as u32]);
                chunk.iter().for_each(|segment| hloo(&mut words, segment));
            }
            None => words.push(0),
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(self.payload.iter().flatten());
        bytes
    }

    /// Whether the decoder restores the content.
    pub(crate) fn decodes(&self) -> bool {
        let bytes = self.bytes();
        let Ok(header) = Header::decode(&bytes) else {
            return false;
        };
        let (chunks, payload) = match header.body {
            Body::Msg { chunks, payload } => (chunks, Some(payload)),
            Body::NoMsg { chunks } => (chunks, None),
            _ => return false,
        };
        let writes: Vec<Vec<Segment>> = chunks
            .writes
            .chunks()
            .map(|chunk| chunk.segments().collect())
            .collect();
        let reply = chunks
            .reply
            .map(|chunk| chunk.segments().collect::<Vec<_>>());
        header.xid == self.xid
            && header.credits == self.credits
            && chunks.reads.segments().collect::<Vec<_>>() == self.reads
            && writes == self.writes
            && reply == self.reply
            && payload == self.payload.as_deref()
    }
}

/// Numbers that often reveal bugs: small ones, and neighbours of powers of two; also arbitrary
/// ones.
pub(crate) fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0u32..20,
        2 => (0u32..32, -2i64..3).prop_map(|(bit, near)| ((1i64 << bit) + near) as u32),
        1 => any::<u32>(),
    ]
}

fn segment() -> impl Strategy<Value = Segment> {
    (any::<u32>(), number(), any::<u64>()).prop_map(|(handle, length, offset)| Segment {
        handle,
        length,
        offset,
    })
}

fn small_segment() -> impl Strategy<Value = Segment> {
    (0u32..8, 0u32..40, 0u64..1 << 16).prop_map(|(handle, length, offset)| Segment {
        handle,
        length,
        offset,
    })
}

fn payload(xid: u32) -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![
        6 => (Just(xid), 0u32..2),
        1 => (any::<u32>(), any::<u32>()),
    ];
    (start, vec(any::<u8>(), 0..80), any::<bool>()).prop_map(|((xid, kind), rest, whole)| {
        let mut bytes = xid.to_be_bytes().to_vec();
        bytes.extend(kind.to_be_bytes());
        bytes.extend(rest);
        if whole {
            bytes.truncate(bytes.len() & !3);
        }
        bytes
    })
}

/// Any well-formed RDMA_MSG or RDMA_NOMSG.
pub(crate) fn message() -> impl Strategy<Value = RpcMsg> {
    let read = (number(), segment()).prop_map(|(position, segment)| ReadSegment {
        position: position & !3,
        segment,
    });
    let lists = (
        vec(read, 0..6),
        vec(vec(segment(), 0..4), 0..4),
        option::of(vec(segment(), 0..4)),
    );
    (any::<u32>(), any::<u32>(), lists).prop_flat_map(|(xid, credits, (reads, writes, reply))| {
        option::of(payload(xid)).prop_map(move |payload| RpcMsg {
            xid,
            credits,
            reads: reads.clone(),
            writes: writes.clone(),
            reply: reply.clone(),
            payload,
        })
    })
}

/// A Call with a Read list that may be valid or invalid.
pub(crate) fn call_with_reads() -> impl Strategy<Value = RpcMsg> {
    let read = (0u32..30, small_segment()).prop_map(|(word, segment)| ReadSegment {
        position: word * 4,
        segment,
    });
    (vec(read, 0..8), option::of(0usize..20)).prop_map(|(reads, inline)| RpcMsg {
        xid: 7,
        credits: 1,
        reads,
        writes: Vec::new(),
        reply: None,
        payload: inline.map(call_payload),
    })
}

/// An RPC Call with `words` words after XID and `msg_type`.
fn call_payload(words: usize) -> Vec<u8> {
    let mut bytes = vec![0; 8 + words * 4];
    bytes[3] = 7;
    bytes
}

/// A Call that a requester has reduced according to the rules.
#[derive(Clone, Debug)]
pub(crate) struct ReducedCall {
    pub(crate) message: RpcMsg,
    /// Bytes in the unreduced Call.
    len: u32,
}

impl ReducedCall {
    /// Whether the responder accepts the Call, with the length of the unreduced one.
    pub(crate) fn assembles(&self) -> bool {
        let bounds = Bounds {
            message: 4096,
            max_inline: 128,
            chunks: 6,
            segments: 24,
        };
        let bytes = self.message.bytes();
        let Ok(Header { body, .. }) = Header::decode(&bytes) else {
            return false;
        };
        let (chunks, inline) = match body {
            Body::Msg { chunks, payload } => (chunks, Some(payload.len())),
            Body::NoMsg { chunks } => (chunks, None),
            _ => return false,
        };
        match Assembly::plan(inline, chunks.reads, &bounds) {
            Ok(None) => inline == Some(self.len as usize),
            Ok(Some(assembly)) => {
                use rpcrdma_core::engine::responder::reassembly::Layout;
                match assembly.layout() {
                    Layout::Whole { length } => length == self.len,
                    Layout::DataItem { head, data, tail } => head + data + tail == self.len,
                }
            }
            Err(_) => false,
        }
    }

    /// The same Call from a client that sends the roundup of its only item inline. `None` if there
    /// are several items, or no inline bytes.
    pub(crate) fn with_inline_roundup(&self) -> Option<Self> {
        let mut call = self.clone();
        let payload = call.message.payload.as_mut()?;
        let position = call.message.reads.first()?.position;
        if call
            .message
            .reads
            .iter()
            .any(|read| read.position != position)
        {
            return None;
        }
        let lengths = call.message.reads.iter().map(|read| read.segment.length);
        let roundup = lengths.sum::<u32>().wrapping_neg() % 4;
        let at = position as usize;
        payload.splice(at..at, vec![0; roundup as usize]);
        Some(call)
    }

    /// The Call with `extra` inline bytes at its end.
    pub(crate) fn with_inline_bytes(&self, extra: usize) -> RpcMsg {
        let mut message = self.message.clone();
        if let Some(payload) = &mut message.payload {
            payload.resize(payload.len() + extra, 0);
        }
        message
    }
}

/// Cuts `length` bytes into segments at `cuts`.
fn cut(handle: u32, length: u32, cuts: &[u32]) -> Vec<Segment> {
    let mut at: Vec<u32> = cuts.iter().map(|cut| cut % (length + 1)).collect();
    at.extend([0, length]);
    at.sort_unstable();
    at.windows(2)
        .map(|pair| Segment {
            handle,
            length: pair[1] - pair[0],
            offset: u64::from(pair[0]),
        })
        .collect()
}

/// A Call that is reduced as RFC 8166 Section 3.4 allows: up to three items, with or without
/// roundup, the rest inline or in a Position-zero chunk, the chunks in ascending or descending
/// order.
pub(crate) fn reduced_call() -> impl Strategy<Value = ReducedCall> {
    let item = (0u32..10, 1u32..60, any::<bool>(), vec(any::<u32>(), 0..3));
    (
        vec(item, 0..4),
        0u32..10,
        any::<bool>(),
        vec(any::<u32>(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(items, tail, long, cuts, reversed)| {
            // Lengths in the unreduced stream, which starts with XID and msg_type.
            let mut at = 8;
            let mut left = 8;
            let mut chunks = Vec::new();
            for (n, (gap, length, roundup, cuts)) in (1..).zip(&items) {
                at += gap * 4;
                left += gap * 4;
                let aligned = length.next_multiple_of(4);
                let sent = if *roundup { aligned } else { *length };
                let position = at;
                chunks.push(
                    cut(n, sent, cuts)
                        .into_iter()
                        .map(|segment| ReadSegment { position, segment })
                        .collect::<Vec<_>>(),
                );
                at += aligned;
            }
            at += tail * 4;
            left += tail * 4;
            if long {
                let zero = cut(99, left, &cuts).into_iter();
                chunks.insert(
                    0,
                    zero.map(|segment| ReadSegment {
                        position: 0,
                        segment,
                    })
                    .collect(),
                );
            }
            if reversed {
                chunks.reverse();
            }
            let payload = (!long).then(|| call_payload(left as usize / 4 - 2));
            ReducedCall {
                message: RpcMsg {
                    xid: 7,
                    credits: 1,
                    reads: chunks.into_iter().flatten().collect(),
                    writes: Vec::new(),
                    reply: None,
                    payload,
                },
                len: at,
            }
        })
}

/// A Call that offers Write chunks and perhaps a Reply chunk, which may be too small.
pub(crate) fn call_with_writes() -> impl Strategy<Value = RpcMsg> {
    let segment = || {
        (1u32..9, prop_oneof![0u32..200, 200u32..9000]).prop_map(|(handle, length)| Segment {
            handle,
            length,
            offset: 64,
        })
    };
    (
        vec(vec(segment(), 0..4), 0..4),
        option::of(vec(segment(), 0..4)),
    )
        .prop_map(|(writes, reply)| RpcMsg {
            xid: 7,
            credits: 1,
            reads: Vec::new(),
            writes,
            reply,
            payload: Some(call_payload(10)),
        })
}

/// Lengths of the segments that a Call offers. A zero ends the chunk.
pub(crate) fn offered_lengths() -> impl Strategy<Value = [u16; 3]> {
    [0u16..3, 0u16..3, 0u16..3]
}

/// A Reply that may return the chunks offered, or others.
pub(crate) fn returned_reply() -> impl Strategy<Value = RpcMsg> {
    let chunk = |handle: u32| {
        let handle = prop_oneof![9 => Just(handle), 1 => 0u32..4];
        let length = prop_oneof![9 => 0u32..3, 1 => number()];
        vec((handle, length), 0..4).prop_map(|segments| {
            segments
                .into_iter()
                .map(|(handle, length)| Segment {
                    handle,
                    length,
                    offset: 0,
                })
                .collect::<Vec<_>>()
        })
    };
    let writes = prop_oneof![9 => vec(chunk(1), 0..2), 1 => vec(chunk(1), 2..3)];
    let position = prop_oneof![9 => Just(0u32), 1 => Just(4u32)];
    let read = (position, prop_oneof![9 => 0u32..3, 1 => number()]);
    let reads = prop_oneof![2 => Just(Vec::new()), 1 => vec(read, 0..4)];
    let all = (writes, option::of(chunk(2)), any::<bool>(), reads);
    all.prop_map(|(writes, reply, long, reads)| RpcMsg {
        xid: 7,
        credits: 1,
        reads: reads
            .into_iter()
            .map(|(position, length)| ReadSegment {
                position,
                segment: Segment {
                    length,
                    ..Segment::default()
                },
            })
            .collect(),
        writes,
        reply,
        payload: (!long).then(|| vec![0, 0, 0, 7, 0, 0, 0, 1]),
    })
}
