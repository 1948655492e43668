// SPDX-License-Identifier: GPL-2.0

//! Pieces tile the Call, and put every byte where the RFC says it belongs.

use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::BadReads;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Layout;
use rpcrdma_core::engine::responder::reassembly::Part;
use rpcrdma_core::wire::ReadList;

/// Where a byte of the assembled Call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Byte {
    Inline(u32),
    Remote(u32, u64),
    Pad,
}

/// Small, so that the model can put every byte in place.
const BOUNDS: Bounds = Bounds {
    message: 4096,
    max_inline: 128,
    chunks: 6,
    segments: 24,
};

/// The assembly of the Call in `bytes`, if it is one.
pub fn assembly(bytes: &[u8]) {
    let Ok(FromClient::Call(call)) = from_client(bytes, Extensions::default()) else {
        return;
    };
    let inline = call.payload.map(<[u8]>::len);
    let model = model(inline, call.chunks.reads);
    match (Assembly::plan(inline, call.chunks.reads, &BOUNDS), model) {
        (Ok(None), Ok(model)) => {
            let inline = inline.expect("a Long Call has something to pull");
            let all: Vec<_> = (0..).take(inline).map(Byte::Inline).collect();
            assert_eq!(model, all);
        }
        (Ok(Some(assembly)), Ok(model)) => check(&assembly, inline, &model),
        (Err(_), Err(_)) => {}
        (plan, model) => panic!("{plan:?} instead of {model:?} for {call:?}"),
    }
}

fn check(assembly: &Assembly<'_>, inline: Option<usize>, model: &[Byte]) {
    let parts: Vec<Byte> = assembly.parts().flat_map(expand).collect();
    assert_eq!(parts, model);
    let pulls: Vec<_> = assembly.reads().collect();
    assert!(pulls.iter().all(|segment| segment.length > 0));
    match assembly.layout() {
        Layout::Whole { length } => assert_eq!(length as usize, model.len()),
        Layout::DataItem { head, data, tail } => {
            assert_eq!(Some((head + tail) as usize), inline);
            assert_eq!((head + data + tail) as usize, model.len());
            // Head and tail are the inline bytes, and only they are.
            let (head, rest) = model.split_at(head as usize);
            let (data, tail) = rest.split_at(data as usize);
            assert!(head
                .iter()
                .chain(tail)
                .all(|o| matches!(o, Byte::Inline(_))));
            assert!(!data.iter().any(|o| matches!(o, Byte::Inline(_))));
            let pulled: Vec<Byte> = pulls.into_iter().map(Part::Read).flat_map(expand).collect();
            assert_eq!(pulled, data[..pulled.len()]);
            assert!(data[pulled.len()..].iter().all(|o| *o == Byte::Pad));
            assert!(data.len() - pulled.len() < 4);
        }
    }
}

fn expand(part: Part) -> Vec<Byte> {
    match part {
        Part::Inline { offset, length } => (offset..offset + length).map(Byte::Inline).collect(),
        Part::Read(segment) => (0..u64::from(segment.length))
            .map(|n| Byte::Remote(segment.handle, segment.offset.wrapping_add(n)))
            .collect(),
        Part::Pad { length } => (0..length).map(|_| Byte::Pad).collect(),
    }
}

/// RFC 8166 Section 3.4.5, byte by byte: take what is left of the stream, and insert each chunk
/// at its Position, lowest first. As Positions count bytes of the unreduced stream, the place to
/// insert at is simply the Position.
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
    let mut end = 0;
    for position in positions {
        let mut item = chunk(position);
        item.resize(item.len().next_multiple_of(4), Byte::Pad);
        let place = position as usize;
        if place < end || place > stream.len() || (place == 0 && inline.is_some()) {
            return Err(BadReads::Position);
        }
        end = place + item.len();
        stream.splice(place..place, item);
    }
    match stream.len() <= BOUNDS.message as usize {
        true => Ok(stream),
        false => Err(BadReads::TooComplex),
    }
}
