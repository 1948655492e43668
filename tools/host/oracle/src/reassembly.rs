// SPDX-License-Identifier: GPL-2.0

//! The parts of a reassembled Call have every byte once, in the order that the RFC requires.

use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::BadReads;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Layout;
use rpcrdma_core::engine::responder::reassembly::Part;
use rpcrdma_core::wire::ReadList;

/// The source of a byte of the reassembled Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Byte {
    /// The inline byte at this offset.
    Inline(u32),
    /// The byte with this handle and address.
    Remote(u32, u64),
    /// Roundup that was not sent.
    Pad,
}

/// Bounds small enough for a model that stores every byte.
const BOUNDS: Bounds = Bounds {
    message: 4096,
    max_inline: 128,
    chunks: 6,
    segments: 24,
};

/// Reassembles the Call in `bytes`, if it is one.
pub fn reassembly(bytes: &[u8]) {
    let Ok(FromClient::Call(call)) = from_client(bytes, Extensions::default()) else {
        return;
    };
    let inline = call.payload.map(<[u8]>::len);
    let model = model(inline, call.chunks.reads);
    match (Assembly::plan(inline, call.chunks.reads, &BOUNDS), model) {
        (Ok(None), Ok(model)) => {
            let inline = inline.expect("a Long Call has a Read chunk");
            let all: Vec<_> = (0..).take(inline).map(Byte::Inline).collect();
            assert_eq!(model, all);
        }
        (Ok(Some(assembly)), Ok(model)) => check(&assembly, inline, &model),
        (Err(_), Err(_)) => {}
        (plan, model) => panic!("{plan:?} instead of {model:?} for {call:?}"),
    }
}

/// Compares the parts and the layout of `assembly` with the bytes of the model.
fn check(assembly: &Assembly<'_>, inline: Option<usize>, model: &[Byte]) {
    let parts: Vec<Byte> = assembly.parts().flat_map(expand).collect();
    assert_eq!(parts, model);
    let reads: Vec<_> = assembly.reads().collect();
    assert!(reads.iter().all(|segment| segment.length > 0));
    match assembly.layout() {
        Layout::Whole { length } => assert_eq!(length as usize, model.len()),
        Layout::DataItem { head, data, tail } => {
            let inline = inline.expect("a Long Call has no such layout");
            let skipped = inline - (head + tail) as usize;
            assert!(skipped == 0 || skipped == inline % 4);
            assert_eq!((head + data + tail) as usize, model.len());
            // All inline bytes but the roundup are in head and tail, and no others. The tail is the
            // end of the inline bytes.
            let (head, rest) = model.split_at(head as usize);
            let (data, tail) = rest.split_at(data as usize);
            let last = (0..).take(inline).skip(inline - tail.len());
            assert!(tail.iter().copied().eq(last.map(Byte::Inline)));
            assert!(head
                .iter()
                .chain(tail)
                .all(|o| matches!(o, Byte::Inline(_))));
            assert!(!data.iter().any(|o| matches!(o, Byte::Inline(_))));
            let read: Vec<Byte> = reads.into_iter().map(Part::Read).flat_map(expand).collect();
            assert_eq!(read, data[..read.len()]);
            assert!(data[read.len()..].iter().all(|o| *o == Byte::Pad));
            assert!(data.len() - read.len() < 4);
        }
    }
}

/// The bytes of a part.
fn expand(part: Part) -> Vec<Byte> {
    match part {
        Part::Inline { offset, length } => (offset..offset + length).map(Byte::Inline).collect(),
        Part::Read(segment) => (0..u64::from(segment.length))
            .map(|n| Byte::Remote(segment.handle, segment.offset.wrapping_add(n)))
            .collect(),
        Part::Pad { length } => (0..length).map(|_| Byte::Pad).collect(),
    }
}

/// Reassembles a Call byte by byte, as in RFC 8166 Section 3.4.5: inserts each chunk into the
/// reduced stream at its Position, lowest first. All chunks before it have been inserted, so the
/// Position is the offset.
///
/// If the inline bytes are not whole words, those that are too many may be the roundup of a single
/// chunk, at its Position.
///
/// # Errors
///
/// An error if the Read list is invalid. Its value need not be that of the engine.
fn model(inline: Option<usize>, list: ReadList<'_>) -> Result<Vec<Byte>, BadReads> {
    let reads: Vec<_> = list.segments().filter(|r| r.segment.length > 0).collect();
    let mut positions: Vec<u32> = reads.iter().map(|read| read.position).collect();
    positions.sort_unstable();
    positions.dedup();
    let too_complex = reads.len() > BOUNDS.segments as usize
        || positions.len() > BOUNDS.chunks as usize
        || reads
            .iter()
            .map(|r| u64::from(r.segment.length))
            .sum::<u64>()
            > u64::from(BOUNDS.message);
    if too_complex {
        return Err(BadReads::TooComplex);
    }
    let chunk = |position| {
        let segments = reads.iter().filter(move |read| read.position == position);
        segments
            .flat_map(|read| expand(Part::Read(read.segment)))
            .collect::<Vec<_>>()
    };
    let mut stream: Vec<Byte> = match inline {
        Some(length) => (0..).take(length).map(Byte::Inline).collect(),
        None if positions.first() == Some(&0) => {
            positions.remove(0);
            chunk(0)
        }
        None => return Err(BadReads::PositionZero),
    };
    if let (Some(length), &[position]) = (inline, &positions[..]) {
        let (extra, at) = (length % 4, position as usize);
        if extra != 0 && (chunk(position).len() + extra) % 4 == 0 && at < length {
            stream.drain(at..at + extra);
        }
    }
    let mut end = 0;
    for position in positions {
        let mut item = chunk(position);
        item.resize(item.len().next_multiple_of(4), Byte::Pad);
        let at = position as usize;
        if at < end || at > stream.len() || (at == 0 && inline.is_some()) {
            return Err(BadReads::Position);
        }
        end = at + item.len();
        stream.splice(at..at, item);
    }
    match stream.len() <= BOUNDS.message as usize {
        true => Ok(stream),
        false => Err(BadReads::TooComplex),
    }
}
