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
/// The longest header: flavor, length and at most 400 bytes, twice (RFC 5531 Section 8.2).
pub const MAX_LEN: usize = FIXED + 2 * (8 + 400);

/// The flavor of a credential that GSS knows (RFC 2203 Section 1).
const RPCSEC_GSS: u32 = 6;
/// GSS version, procedure and sequence number, in front of the service (RFC 2203 Section 5).
const BEFORE_SERVICE: usize = 12;
/// The service that protects no arguments.
const GSS_SVC_NONE: u32 = 1;

/// Bytes of the Call in front of its arguments; `None` if `message` does not reach that far.
#[inline]
fn length(message: &[u8]) -> Option<usize> {
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

/// Whether GSS leaves the arguments of the Call that starts with `message` as they are.
///
/// Else nothing may be taken out of them (RFC 8166 Section 8.2.2.3), and who undoes the protection
/// takes it for granted that nothing was.
#[inline]
fn is_unprotected(message: &[u8]) -> bool {
    let mut rest = Reader::new(message);
    if rest.take(FIXED).is_err() || rest.word() != Ok(RPCSEC_GSS) {
        return true;
    }
    let _length = rest.word();
    rest.take(BEFORE_SERVICE).is_ok() && rest.word() == Ok(GSS_SVC_NONE)
}

/// Whether the Call that starts with `message` may lack what `reads` hold of it.
///
/// A chunk at Position zero holds the Call itself, and so does not count.
#[inline]
pub fn allows_reads(message: &[u8], reads: ReadList<'_>) -> bool {
    let items = reads.segments().filter(|read| !read.segment.is_empty());
    let lowest = items.map(|read| read.position).filter(|&at| at != 0).min();
    lowest.is_none_or(|lowest| {
        let follows = |end| usize::try_from(lowest).is_ok_and(|lowest| lowest >= end);
        is_unprotected(message) && length(message).is_some_and(follows)
    })
}
