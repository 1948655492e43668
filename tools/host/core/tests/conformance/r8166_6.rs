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
/// the Read segments `reads` beside its Position-zero chunk: Positions and lengths.
fn accepted(procedure: Procedure, reads: &[(u32, u32)], length: u32) -> bool {
    let rpc = words(&[&[XID, CALL, 2], &procedure[..], &[0; 4], &[7; 9]].concat());
    let mut all = vec![(0, segment(1, 64, 0x1000))];
    all.extend(reads.iter().map(|&(at, len)| (at, segment(2, len, 0x2000))));
    let call = nomsg_with_reads(&all);
    eligible::allows_reads(&rpc, call_at_server(&call).chunks.reads, length)
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

/// Whether a Call of this procedure may have `len` bytes in a Read chunk at `position`, and
/// `inline` bytes in all.
fn accepted_inline(procedure: Procedure, (position, len): (u32, u32), inline: u32) -> bool {
    let mut bytes = nomsg_with_reads(&[(position, segment(2, len, 0x2000))]);
    bytes[15] = 0;
    let mut rpc = words(&[&[XID, CALL, 2], &procedure[..]].concat());
    rpc.resize(inline as usize, 0);
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
        eligible::allows_reads(payload, reads, length)
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
        assert!(!eligible::allows_reads(&rpc[..len], reads, 28), "{len}");
    }
    assert!(eligible::allows_reads(&rpc, reads, 28));
}
