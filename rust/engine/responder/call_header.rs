// SPDX-License-Identifier: GPL-2.0

//! Checks that no Read chunk reduces the header of an RPC Call.
//!
//! Credential and verifier may not be reduced (RFC 8166 Section 8.2.2), and the code that verifies
//! them expects the whole header in one contiguous buffer.

use crate::wire::{
    ReadList,
    Reader, //
};

/// Bytes in XID, message type, RPC version, program, version, procedure (RFC 5531 Section 9).
const FIXED: usize = 24;
/// Bytes in the longest header: flavor, length and at most 400 bytes, twice (RFC 5531 Section 8.2).
pub const MAX_LEN: usize = FIXED + 2 * (8 + 400);

/// The flavor of an RPCSEC_GSS credential (RFC 2203 Section 1).
const RPCSEC_GSS: u32 = 6;
/// Bytes before the service in an RPCSEC_GSS credential: version, procedure, sequence number
/// (RFC 2203 Section 5).
const BEFORE_SERVICE: usize = 12;
/// The service without integrity and privacy.
const GSS_SVC_NONE: u32 = 1;

/// Bytes in the header of the Call. `None` if `message` ends within the header.
#[inline]
fn header_len(message: &[u8]) -> Option<usize> {
    let mut rest = Reader::new(message);
    rest.take(FIXED).ok()?;
    // Credential and verifier: flavor, length, body.
    for _ in 0..2 {
        rest.word().ok()?;
        let body = usize::try_from(rest.word().ok()?).ok()?;
        rest.take(body.checked_next_multiple_of(4)?).ok()?;
    }
    // NO-OVERFLOW: `rest` is a part of `message`.
    Some(message.len() - rest.remaining())
}

/// Whether the Call uses neither GSS integrity nor GSS privacy.
///
/// With either, no item may be reduced (RFC 8166 Section 8.2.2.3): the code that verifies or
/// decrypts the arguments expects all of them.
#[inline]
fn is_unprotected(message: &[u8]) -> bool {
    let mut rest = Reader::new(message);
    if rest.take(FIXED).is_err() || rest.word() != Ok(RPCSEC_GSS) {
        return true;
    }
    let _length = rest.word();
    rest.take(BEFORE_SERVICE).is_ok() && rest.word() == Ok(GSS_SVC_NONE)
}

/// Whether the Call that begins with `message` may be reduced by the chunks of `reads`.
///
/// A Position-zero chunk does not count: it holds the Call itself.
#[inline]
pub fn allows_reads(message: &[u8], reads: ReadList<'_>) -> bool {
    let items = reads.segments().filter(|read| !read.segment.is_empty());
    let lowest = items.map(|read| read.position).filter(|&at| at != 0).min();
    lowest.is_none_or(|lowest| {
        let follows = |end| usize::try_from(lowest).is_ok_and(|lowest| lowest >= end);
        is_unprotected(message) && header_len(message).is_some_and(follows)
    })
}
