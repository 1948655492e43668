// SPDX-License-Identifier: GPL-2.0

//! Distributes the bytes of an inline Reply over the head, the pages and the tail of an `xdr_buf`.
//!
//! C: rpc_rdma.c, rpcrdma_inline_fixup()
//!
//! The consumer estimates the bytes before the data item, and lays out head, pages and tail by
//! that. The inline bytes are in the Receive buffer. The head stays there, and the caller points
//! the `xdr_buf` to it. The caller copies the bytes of pages and tail. The tail is not shortened,
//! because the XDR decoder may shift bytes of the head or the pages into it. A Reply in a Reply
//! chunk needs no placement: the chunk is head, pages and tail.
//!
//! XDR streams consist of whole words, and the consumer accepts no other length. A responder that
//! pads its last item with too few bytes (ntirpc) sends a payload that ends within a word: the word
//! is placed as a whole, with the bytes that are in the Receive buffer behind the message. They are
//! padding, or bytes that this responder has sent earlier.

use crate::wire::{
    pad,
    whole_words, //
};

use super::call::XdrLens;

/// A range of the inline payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first byte.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

/// The distribution of the bytes of a Reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// New length of the head, which is the front of the inline payload.
    pub head: u32,
    /// The range of the inline payload to copy to the front of the pages.
    pub copy: Run,
    /// New length of the pages. `None` if it does not change.
    pub pages: Option<u32>,
    /// The range of the inline payload to copy to the front of the tail.
    pub tail: Run,
    /// Length of the whole Reply, for the consumer.
    pub length: u32,
}

impl Placement {
    /// The placement of a Reply that is inline as a whole: it fills head, pages and tail in turn.
    ///
    /// Bytes that exceed `room` are cut off.
    #[inline(always)]
    pub fn inline(payload: usize, room: &XdrLens) -> Self {
        let payload = whole_words(u32::try_from(payload).unwrap_or(u32::MAX));
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
                // NO-OVERFLOW: the three parts are at most `payload` together.
                offset: head + pages,
                length: tail,
            },
            length: head + pages + tail,
        }
    }

    /// The placement of a Reply whose data item is in the Write chunk, that is, in the pages. The
    /// rest of the Reply is inline.
    ///
    /// If the consumer's estimate of the head was too long, the head ends with the inline bytes,
    /// because the data item follows in the stream. The pages end with the data item, because the
    /// tail follows. The roundup of the item is not sent (RFC 8166 Section 3.4.6.2). To make room
    /// for it in the tail, the copied range begins as many bytes earlier. The XDR decoder ignores
    /// the content of the roundup.
    #[inline(always)]
    pub fn with_write_chunk(payload: usize, by_write: u32, room: &XdrLens) -> Self {
        if by_write == 0 {
            return Self::inline(payload, room);
        }
        let payload = whole_words(u32::try_from(payload).unwrap_or(u32::MAX));
        let head = payload.min(room.head);
        let pages = by_write.min(room.data);
        let roundup = pad(pages).min(head).min(room.tail);
        let rest = (payload - head).min(room.tail - roundup);
        let tail = Run {
            offset: head - roundup,
            // NO-OVERFLOW: at most `payload`, because `roundup` is at most `head`.
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
