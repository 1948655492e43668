// SPDX-License-Identifier: GPL-2.0

//! Head, pages and tail of a placed Reply are the stream that was sent.

use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::requester::placement::Placement;
use rpcrdma_core::engine::requester::placement::Run;

/// The source of a byte of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Byte {
    /// The inline byte at this offset.
    Inline(u32),
    /// The byte at this offset in the Write chunk.
    Written(u32),
    /// Roundup of the Write chunk, of any content.
    Roundup,
}

/// Places a Reply of `payload` inline bytes and `by_write` bytes in the Write chunk.
pub fn placement(payload: u16, by_write: u16, room: &XdrLens) {
    let by_write = u32::from(by_write).min(room.data);
    let placement = Placement::with_write_chunk(usize::from(payload), by_write, room);
    // The last word is placed as a whole.
    let payload = u32::from(payload).next_multiple_of(4);
    let capacity = u64::from(room.head) + u64::from(room.data) + u64::from(room.tail);
    assert!(u64::from(placement.length) <= capacity.max(u64::from(by_write)) + 3);
    for run in [placement.copy, placement.tail] {
        assert!(run.offset + run.length <= payload);
    }
    assert!(placement.head <= payload.min(room.head));
    assert!(placement.tail.length <= room.tail);

    // The stream: the inline bytes, with the data item and its roundup after the head.
    let inline = (0..payload).map(Byte::Inline);
    let mut sent: Vec<Byte> = inline.collect();
    if by_write > 0 {
        let at = payload.min(room.head) as usize;
        let item = (0..by_write).map(Byte::Written);
        let roundup = by_write.wrapping_neg() % 4;
        let item: Vec<_> = item.chain((0..roundup).map(|_| Byte::Roundup)).collect();
        sent.splice(at..at, item);
    }

    // Head, pages and tail.
    let mut found: Vec<Byte> = (0..placement.head).map(Byte::Inline).collect();
    match placement.pages {
        Some(pages) => {
            assert_eq!(placement.copy, Run::default());
            assert_eq!(pages, by_write);
            found.extend((0..pages).map(Byte::Written));
            let tail = placement.tail;
            let roundup = (by_write.wrapping_neg() % 4)
                .min(placement.head)
                .min(room.tail);
            found.extend((0..tail.length).map(|n| match n < roundup {
                true => Byte::Roundup,
                false => Byte::Inline(tail.offset + n),
            }));
        }
        None => {
            assert_eq!(by_write, 0);
            for run in [placement.copy, placement.tail] {
                found.extend((run.offset..run.offset + run.length).map(Byte::Inline));
            }
        }
    }
    assert_eq!(found.len() as u32, placement.length);
    // The streams are equal up to the room that the consumer has provided.
    let cut = found.len().min(sent.len());
    let roundup_short = placement.head < 3;
    if !roundup_short {
        assert_eq!(found[..cut], sent[..cut]);
        let fits = u64::from(payload.saturating_sub(room.head))
            + u64::from(by_write.wrapping_neg() % 4)
            <= u64::from(room.tail);
        if by_write > 0 && fits {
            assert_eq!(found, sent);
        }
    }
    if by_write == 0 && u64::from(payload) <= capacity {
        assert_eq!(found, sent);
    }
}
