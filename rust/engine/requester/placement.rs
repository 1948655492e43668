// SPDX-License-Identifier: GPL-2.0

//! Where the bytes of a Reply belong in the buffer the consumer has prepared.
//!
//! The consumer estimated how many bytes come before the data item, and laid out head, pages and
//! tail accordingly. What arrived inline is in the Receive buffer: the head is left there and
//! pointed to, what belongs in pages and tail is copied. This file says which bytes those are; the
//! caller executes it. The tail keeps its length, for the consumer may find that there are more
//! bytes in front of it than it thought. What arrived in a Reply chunk needs none of this: a Reply
//! chunk is head, pages and tail.

use crate::wire::pad;

use super::call::XdrLens;

/// A run of bytes of the inline payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Where it starts.
    pub offset: u32,
    /// Its bytes.
    pub length: u32,
}

/// Where the bytes of a Reply belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The new head: the first bytes of the inline payload, in place.
    pub head: u32,
    /// The run of the inline payload to copy to the front of the pages.
    pub copy: Run,
    /// The new length of the pages: `None` leaves it.
    pub pages: Option<u32>,
    /// The run of the inline payload to copy to the front of the tail.
    pub tail: Run,
    /// Bytes of the Reply in all: what is told to the consumer.
    pub length: u32,
}

impl Placement {
    /// Everything came inline: the stream fills head, pages and tail in turn.
    ///
    /// What is more than `room`, which the consumer has prepared, is cut off.
    #[inline]
    pub fn inline(payload: usize, room: &XdrLens) -> Self {
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        let head = payload.min(room.head);
        let left = payload - head;
        let pages = left.min(room.data);
        let tail = (left - pages).min(room.tail);
        Self {
            head,
            copy: Run {
                offset: head,
                length: pages,
            },
            pages: None,
            tail: Run {
                // NO-OVERFLOW: these sums are at most `payload`.
                offset: head + pages,
                length: tail,
            },
            length: head + pages + tail,
        }
    }

    /// The data item came by RDMA Write and is in the pages already; the rest came inline.
    ///
    /// The head ends where the inline bytes end, if the consumer's estimate was longer: what
    /// follows in the stream is the data item. The pages end where the data ends, so that what
    /// follows is the tail. As the item's roundup does not travel (RFC 8166 Section 3.4.6.2), what
    /// is copied to the tail starts that many bytes earlier: nobody looks at their content.
    #[inline]
    pub fn with_write_chunk(payload: usize, by_write: u32, room: &XdrLens) -> Self {
        if by_write == 0 {
            return Self::inline(payload, room);
        }
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        let head = payload.min(room.head);
        let pages = by_write.min(room.data);
        let roundup = pad(pages).min(head).min(room.tail);
        let rest = (payload - head).min(room.tail - roundup);
        let tail = Run {
            offset: head - roundup,
            // NO-OVERFLOW: at most `payload`, as `roundup` is at most `head`.
            length: roundup + rest,
        };
        Self {
            head,
            copy: Run::default(),
            pages: Some(pages),
            tail,
            length: head.saturating_add(pages).saturating_add(tail.length),
        }
    }
}
