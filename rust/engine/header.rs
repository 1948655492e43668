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

/// The flavor of a credential that GSS knows (RFC 2203 Section 1).
const RPCSEC_GSS: u32 = 6;
/// GSS version, procedure and sequence number, in front of the service (RFC 2203 Section 5).
const BEFORE_SERVICE: usize = 12;
/// The service that protects no arguments.
const GSS_SVC_NONE: u32 = 1;

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

/// Whether GSS leaves the arguments of the Call that starts with `message` as they are.
///
/// Else nothing may be taken out of them (RFC 8166 Section 8.2.2.3), and who undoes the protection
/// takes it for granted that nothing was.
#[inline]
pub fn is_unprotected(message: &[u8]) -> bool {
    let mut rest = Reader::new(message);
    if rest.take(FIXED).is_err() || rest.word() != Ok(RPCSEC_GSS) {
        return true;
    }
    let _length = rest.word();
    rest.take(BEFORE_SERVICE).is_ok() && rest.word() == Ok(GSS_SVC_NONE)
}

/// Whether all of `reads` belongs behind the header of the Call that starts with `message`.
#[inline]
pub fn comes_before(message: &[u8], reads: ReadList<'_>) -> bool {
    length(message).is_some_and(|end| {
        let mut reads = reads.segments().filter(|read| !read.segment.is_empty());
        reads.all(|read| usize::try_from(read.position).is_ok_and(|position| position >= end))
    })
}
