// SPDX-License-Identifier: GPL-2.0

//! Where the arguments of an RPC Call begin.
//!
//! No chunk belongs before that: credential and verifier are never reduced (RFC 8166 Section
//! 8.2.2), and whoever checks them takes it for granted that the header lies in one piece.

use crate::wire::{
    ReadList,
    Reader, //
};

/// XID, message type, RPC version, program, version, procedure (RFC 5531 Section 9).
const FIXED: usize = 24;

/// Octets of the Call in front of its arguments; `None` if `message` does not reach that far.
#[inline]
pub fn length(message: &[u8]) -> Option<usize> {
    let mut rest = Reader::new(message);
    rest.take(FIXED).ok()?;
    // Credential and verifier: flavor, length, body.
    for _ in 0..2 {
        rest.word().ok()?;
        let body = usize::try_from(rest.word().ok()?).ok()?;
        rest.take(body.checked_next_multiple_of(4)?).ok()?;
    }
    // NO-OVERFLOW: a part of it.
    Some(message.len() - rest.remaining())
}

/// Whether all of `reads` belongs behind the header of the Call that starts with `message`.
#[inline]
pub fn comes_before(message: &[u8], reads: ReadList<'_>) -> bool {
    length(message).is_some_and(|end| {
        let mut reads = reads.segments().filter(|read| !read.segment.is_empty());
        reads.all(|read| usize::try_from(read.position).is_ok_and(|position| position >= end))
    })
}
