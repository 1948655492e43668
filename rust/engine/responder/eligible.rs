// SPDX-License-Identifier: GPL-2.0

//! Checks that Read chunks reduce eligible arguments only.
//!
//! The Upper-Layer Binding of an RPC program names the arguments that may be reduced, and each is
//! reduced as a whole (RFC 8166 Section 6.1). RFC 8267 is the binding of the NFS programs.

use crate::wire::{
    pad,
    whole_words,
    ReadList,
    Reader, //
};

const NFS: u32 = 100_003;
const NFSACL: u32 = 100_227;

/// The arguments of a procedure that may be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eligible {
    None,
    /// The argument that this many bytes follow.
    Before(u32),
    /// Any argument: an NFSv4 COMPOUND, or a program whose binding this module does not know.
    Any,
}

/// Bytes in an NFSv2 `sattr`, which follows the path in SYMLINK (RFC 1094 Section 2.3.6).
const SATTR2: u32 = 32;

/// Returns the eligible arguments of a procedure: data of WRITE, and the path of SYMLINK (RFC 8267
/// Sections 4 and 5). NULL has no arguments, but may carry a token of RPCSEC_GSS instead of them,
/// which may not be reduced (RFC 8166 Section 8.2.2).
#[inline]
const fn eligible(program: u32, version: u32, procedure: u32) -> Eligible {
    match (program, version, procedure) {
        (NFS, 3, 7 | 10) | (NFS, 2, 8) => Eligible::Before(0),
        (NFS, 2, 13) => Eligible::Before(SATTR2),
        (NFS, 2 | 3, _) | (NFSACL, _, _) | (_, _, 0) => Eligible::None,
        _ => Eligible::Any,
    }
}

/// Returns the eligible arguments of the Call that begins with `message` (RFC 5531 Section 9).
#[inline]
fn of_call(message: &[u8]) -> Eligible {
    let mut rest = Reader::new(message);
    // XID, message type, RPC version.
    let _ = rest.take(12);
    match (rest.word(), rest.word(), rest.word()) {
        (Ok(program), Ok(version), Ok(procedure)) => eligible(program, version, procedure),
        _ => Eligible::None,
    }
}

/// Returns the word at byte `at` of `bytes`.
#[inline]
pub fn word_at(bytes: &[u8], at: u32) -> Option<u32> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    Reader::new(rest).word().ok()
}

/// Whether the chunks of `reads` reduce eligible arguments only, of the Call that begins with
/// `message` and has `length` bytes when it is reassembled. `word_at` returns a word of that Call
/// in front of the chunk.
///
/// A Position-zero chunk does not count: it holds the Call itself.
#[inline]
pub fn allows_reads(
    message: &[u8],
    reads: ReadList<'_>,
    length: u32,
    word_at: impl FnOnce(u32) -> Option<u32>,
) -> bool {
    let follow = match of_call(message) {
        Eligible::Any => return true,
        Eligible::Before(follow) => Some(follow),
        Eligible::None => None,
    };
    let mut items = reads
        .segments()
        .filter(|read| read.position != 0 && !read.segment.is_empty());
    let Some(first) = items.next() else {
        return true;
    };
    let mut len = first.segment.length;
    for read in items {
        if read.position != first.position {
            return false;
        }
        len = len.saturating_add(read.segment.length);
    }
    let end = first.position.saturating_add(len).saturating_add(pad(len));
    if follow.is_none_or(|follow| end.saturating_add(follow) != length) {
        return false;
    }
    // The length word of the item precedes the Position. The chunk may include the roundup.
    let item_len = first.position.checked_sub(4).and_then(word_at);
    item_len.is_some_and(|item_len| whole_words(item_len) == whole_words(len))
}
