// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 6: what Upper-Layer Bindings say. RFC 8267 is that of NFS.

use crate::support::*;
use rpcrdma_core::engine::responder::eligible;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::Bounds;

const NFS: u32 = 100_003;
const NFSACL: u32 = 100_227;
/// Bytes before the arguments of a Call with AUTH_NONE.
const ARGUMENTS: u32 = 40;

/// A procedure: program, version and number.
type Procedure = [u32; 3];

/// Whether a Long Call of this procedure, which has `length` bytes when it is reassembled, may have
/// the Read segments `reads` beside its Position-zero chunk: Positions and lengths. The word before
/// the first Position is the length of its item.
fn accepted(procedure: Procedure, reads: &[(u32, u32)], length: u32) -> bool {
    let first = reads.first().map_or(0, |&(at, _)| at);
    let lens = reads.iter().filter(|&&(at, _)| at == first);
    let item_len = lens.fold(0, |sum: u32, &(_, len)| sum.saturating_add(len));
    accepted_behind(item_len, procedure, reads, length)
}

/// [`accepted`], if the word before the first Position is `word`.
fn accepted_behind(word: u32, procedure: Procedure, reads: &[(u32, u32)], length: u32) -> bool {
    let word_at = |at| reads.iter().any(|read| read.0 == at + 4).then_some(word);
    let rpc = words(&[&[XID, CALL, 2], &procedure[..], &[0; 4], &[7; 9]].concat());
    let mut all = vec![(0, segment(1, 64, 0x1000))];
    all.extend(reads.iter().map(|&(at, len)| (at, segment(2, len, 0x2000))));
    let call = nomsg_with_reads(&all);
    eligible::allows_reads(&rpc, call_at_server(&call).chunks.reads, length, word_at)
}

/// Procedures of which one argument may be reduced, and the number of bytes behind this argument.
const REDUCIBLE: [(Procedure, u32); 4] = [
    ([NFS, 2, 8], 0),
    ([NFS, 2, 13], 32),
    ([NFS, 3, 7], 0),
    ([NFS, 3, 10], 0),
];

#[test]
fn r8166_6_1_2_only_the_eligible_argument_is_reduced() {
    for (procedure, behind) in REDUCIBLE {
        for len in [1, 2, 3, 4, 20_000] {
            let padded = len + (4 - len % 4) % 4;
            for position in [ARGUMENTS + 4, ARGUMENTS + 64] {
                let length = position + padded + behind;
                let alone = [(position, len)];
                assert!(accepted(procedure, &alone, length));
                // No part of the item, and nothing in front of the item.
                for word in [0, 7, padded + 1, padded + 4, 2 * padded, u32::MAX] {
                    let whole = word.div_ceil(4) == padded / 4;
                    assert_eq!(accepted_behind(word, procedure, &alone, length), whole);
                }
                // The roundup may be in the chunk, in a segment of its own.
                assert!(accepted(
                    procedure,
                    &[(position, len), (position, padded - len)],
                    length
                ));
                // An argument in front, and a part of the eligible one.
                for off in [4, 8, 32] {
                    assert!(!accepted(procedure, &alone, length + off), "{procedure:?}");
                    assert!(!accepted(procedure, &[(position - 4, len)], length + off));
                }
                // Two arguments.
                let both = [(position - 4, 4), (position, len)];
                assert!(!accepted(procedure, &both, length), "{procedure:?}");
            }
        }
    }
}

#[test]
fn r8166_6_1_2_chunk_begins_where_the_item_begins() {
    let handle = [&[32][..], &[0x0100_0601; 8]].concat();
    let name = [5, 0x6162_6364, 0x6500_0000];
    let call = |procedure: Procedure, arguments: &[&[u32]]| {
        let header = [&[XID, CALL, 2], &procedure[..], &[0; 4]].concat();
        words(&[header, arguments.concat()].concat())
    };
    for len in [509, 510, 511, 512] {
        let item = [&[len][..], &[0x7777_7777; 128]].concat();
        let calls = [
            // Offset, count, stable_how.
            (call([NFS, 3, 7], &[&handle, &[0, 0, len, 2], &item]), 0),
            // The sattr3 sets nothing.
            (call([NFS, 3, 10], &[&handle, &name, &[0; 6], &item]), 0),
            (call([NFS, 2, 8], &[&handle[1..], &[0, 0, len], &item]), 0),
            (
                call([NFS, 2, 13], &[&handle[1..], &name, &item, &[0; 8]]),
                32,
            ),
        ];
        for (rpc, behind) in calls {
            let length = rpc.len() as u32;
            let end = length - behind;
            for position in (ARGUMENTS..end).step_by(4) {
                let chunk = segment(2, end - position, 0x2000);
                let header = nomsg_with_reads(&[(0, segment(1, 64, 0x1000)), (position, chunk)]);
                let reads = call_at_server(&header).chunks.reads;
                let allowed =
                    eligible::allows_reads(&rpc, reads, length, |at| eligible::word_at(&rpc, at));
                assert_eq!(allowed, position == end - 512, "{position}");
            }
        }
    }
}

/// Whether a Call of this procedure may have `len` bytes in a Read chunk at `position`, and
/// `inline` bytes in all.
fn accepted_inline(procedure: Procedure, (position, len): (u32, u32), inline: u32) -> bool {
    let mut bytes = nomsg_with_reads(&[(position, segment(2, len, 0x2000))]);
    bytes[15] = 0;
    let mut rpc = words(&[&[XID, CALL, 2], &procedure[..]].concat());
    rpc.resize(inline as usize, 0);
    rpc[position as usize - 4..][..4].copy_from_slice(&len.to_be_bytes());
    bytes.extend(rpc);
    let call = call_at_server(&bytes);
    let (payload, reads) = (call.payload.unwrap(), call.chunks.reads);
    let bounds = Bounds {
        message: 1 << 20,
        max_inline: 4096,
        chunks: 16,
        segments: 256,
    };
    Assembly::plan(Some(payload.len()), reads, &bounds).is_ok_and(|plan| {
        let length = plan.unwrap().layout().length();
        eligible::allows_reads(payload, reads, length, |at| eligible::word_at(payload, at))
    })
}

#[test]
fn r8166_6_1_2_roundup_may_be_inline() {
    for (procedure, behind) in REDUCIBLE {
        for len in 1..=9 {
            let pad = (4 - len % 4) % 4;
            let position = ARGUMENTS + 40;
            let inline = position + behind;
            for pad in [0, pad] {
                assert!(accepted_inline(procedure, (position, len), inline + pad));
                for more in [4, 8, 32] {
                    assert!(!accepted_inline(
                        procedure,
                        (position, len),
                        inline + pad + more
                    ));
                }
            }
            for other in (1..4).filter(|&other| other != pad) {
                assert!(!accepted_inline(procedure, (position, len), inline + other));
            }
        }
    }
}

#[test]
fn r8166_6_1_2_other_procedures_are_not_reduced() {
    for version in [2, 3] {
        for number in 0..22 {
            let procedure = [NFS, version, number];
            if REDUCIBLE
                .iter()
                .any(|(reducible, _)| *reducible == procedure)
            {
                continue;
            }
            let length = ARGUMENTS + 4 + 64;
            assert!(!accepted(procedure, &[(ARGUMENTS + 4, 64)], length));
            assert!(!accepted(procedure, &[(ARGUMENTS, 4)], length));
            // Empty segments and the Call itself reduce nothing.
            assert!(accepted(procedure, &[], length));
            assert!(accepted(procedure, &[(ARGUMENTS, 0)], length));
            assert!(!accepted(
                [NFSACL, version, number],
                &[(ARGUMENTS, 4)],
                length
            ));
        }
    }
}

#[test]
fn r8166_6_1_2_bindings_that_are_not_known_are_not_judged() {
    for program in [0, 100_005, 400_000] {
        let two = [(ARGUMENTS, 4), (ARGUMENTS + 40, 64)];
        assert!(accepted([program, 1, 1], &two, 4096));
    }
    // A COMPOUND may have several eligible arguments.
    let two = [(ARGUMENTS + 40, 64), (ARGUMENTS + 400, 1)];
    assert!(accepted([NFS, 4, 1], &two, 4096));
}

#[test]
fn r8166_6_1_2_lengths_do_not_overflow() {
    for len in [u32::MAX, u32::MAX - 3, 1 << 31] {
        let twice = [(ARGUMENTS, len), (ARGUMENTS, len)];
        assert!(!accepted([NFS, 3, 7], &twice, 4096));
        assert!(!accepted([NFS, 2, 13], &twice, 4096));
        assert!(!accepted([NFS, 3, 7], &[(u32::MAX - 3, len)], 4096));
    }
}

#[test]
fn r8166_6_1_2_truncated_calls_are_not_reduced() {
    let rpc = words(&[XID, CALL, 2, NFS, 4, 1]);
    let call = nomsg_with_reads(&[(0, segment(1, 24, 0x1000)), (24, segment(2, 4, 0x2000))]);
    let reads = call_at_server(&call).chunks.reads;
    for len in (0..24).step_by(4) {
        assert!(
            !eligible::allows_reads(&rpc[..len], reads, 28, |_| Some(4)),
            "{len}"
        );
    }
    assert!(eligible::allows_reads(&rpc, reads, 28, |_| Some(4)));
}
