// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 8: security.

use crate::support::*;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::responder::call_header;
use rpcrdma_core::engine::responder::eligible;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::Form;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::engine::responder::reply::ReplyShape;

/// Whether a Call with this credential and verifier, truncated to `inline` bytes, may have a Read
/// chunk at `position`.
fn accepted(credential: &[u32], verifier: &[u32], inline: usize, position: u32) -> bool {
    let mut rpc = vec![XID, CALL, 2, 100_003, 4, 1];
    rpc.extend([credential, verifier].concat());
    rpc.extend([7; 8]);
    let a = hloo(1, 4, 0x1000);
    let mut call = message(0, &[&[1, position], &a, &[0, 0, 0], &rpc]);
    call.truncate(call.len() - 4 * rpc.len() + inline);
    let call = call_at_server(&call);
    call_header::allows_reads(call.payload.unwrap(), call.chunks.reads)
}

#[test]
fn r8166_8_2_2_1_no_chunk_in_the_header_of_a_call() {
    let (none, five) = ([0, 0], [1, 5, 1, 0x0200_0000]);
    for (credential, end) in [(&none[..], 40), (&five[..], 48)] {
        for position in (4..end + 12).step_by(4) {
            let behind = position >= end;
            assert_eq!(
                accepted(credential, &none, 60, position),
                behind,
                "{position}"
            );
        }
        // The header is truncated, so its end is unknown.
        for inline in (24..end as usize).step_by(4) {
            assert!(!accepted(credential, &none, inline, end));
        }
        assert!(accepted(credential, &none, end as usize, end));
    }
    for huge in [61, 401, 1 << 31, u32::MAX - 3, u32::MAX] {
        assert!(!accepted(&[1, huge], &none, 60, 56));
        assert!(!accepted(&none, &[1, huge], 60, 56));
    }
}

#[test]
fn r8166_8_2_2_3_1_requester_reduces_nothing_under_integrity() {
    let mut shape = write_call(20_000);
    shape.protected = true;
    assert_eq!(
        plan(&shape, &limits()).unwrap().call,
        CallPlan::PositionZero
    );
    let mut shape = read_call(20_000);
    shape.protected = true;
    assert_eq!(
        plan(&shape, &limits()).unwrap().reply,
        ReplyPlan::ReplyChunk
    );
}

#[test]
fn r8166_8_2_2_3_1_responder_reduces_nothing_under_integrity() {
    let write = hloo(1, 8192, 0x1000);
    let reply = hloo(2, 8192, 0x2000);
    let call = message(0, &[&[0, 1, 1], &write, &[0, 1, 1], &reply, &rpc(CALL)]);
    let chunks = call_at_server(&call).chunks;
    let results = [Payload {
        offset: 100,
        length: 5_000,
    }];
    for (threshold, form) in [(4096, Form::ReplyChunk), (8192, Form::Inline)] {
        let shape = ReplyShape {
            length: 5_200,
            protected: true,
        };
        let limits = ReplyLimits {
            threshold,
            refuses_unused: false,
            exposed_segments: 0,
        };
        let reply = reply::plan(&chunks, &results, &shape, &limits).unwrap();
        assert_eq!(reply.form(), form);
        assert_eq!((by_write(&reply), reply.left()), (0, 5_200));
        assert_eq!(reply.writes().count(), 0);
        assert_eq!(reply.runs().collect::<Vec<_>>(), [(0, 5_200)]);
    }
}

/// Whether a Long Call that begins with `rpc` may have a Read chunk at each of `positions`.
fn long_call_allows(rpc: &[u8], positions: &[u32]) -> bool {
    let mut reads = vec![(0, segment(1, 4096, 0x1000))];
    reads.extend(positions.iter().map(|&at| (at, segment(2, 64, 0x2000))));
    let call = nomsg_with_reads(&reads);
    call_header::allows_reads(rpc, call_at_server(&call).chunks.reads)
}

#[test]
fn r8166_8_2_2_1_no_chunk_in_the_header_of_a_long_call() {
    let rpc = words(&[&[XID, CALL, 2, 100_003, 4, 1][..], &[0; 4], &[7; 9]].concat());
    assert!(long_call_allows(&rpc, &[]));
    assert!(long_call_allows(&rpc, &[40]));
    assert!(long_call_allows(&rpc, &[4096, 40]));
    for position in (4..40).step_by(4) {
        assert!(!long_call_allows(&rpc, &[position]), "{position}");
        assert!(!long_call_allows(&rpc, &[4096, position]), "{position}");
    }
    // A truncated header matters only if there are Read chunks.
    assert!(long_call_allows(&rpc[..8], &[]));
    assert!(!long_call_allows(&rpc[..36], &[4096]));
}

#[test]
fn r8166_8_2_2_1_no_token_of_a_context_in_a_chunk() {
    // NFS, NFSv4 callbacks, and a program whose binding is not known.
    for (program, version) in [(100_003, 3), (100_003, 4), (0x4000_0000, 1), (400_000, 1)] {
        // INIT, CONTINUE_INIT, DESTROY.
        for gss_proc in [1, 2, 3] {
            let null = [XID, CALL, 2, program, version, 0];
            let credential = [6, 20, 1, gss_proc, 0, 1, 0];
            let rpc = words(&[&null[..], &credential, &[0, 0, 64]].concat());
            let position = rpc.len() as u32;
            let token = (position, segment(2, 64, 0x2000));
            let call = nomsg_with_reads(&[(0, segment(1, position, 0x1000)), token]);
            let reads = call_at_server(&call).chunks.reads;
            let word_at = |at| eligible::word_at(&rpc, at);
            assert!(!eligible::allows_reads(&rpc, reads, position + 64, word_at));
        }
    }
}

#[test]
fn r8166_8_2_2_1_longest_header_of_a_call() {
    let mut rpc = vec![XID, CALL, 2, 100_003, 4, 1];
    for _ in 0..2 {
        // Flavor, length, body.
        rpc.extend([1, 400]);
        rpc.extend([0; 100]);
    }
    let rpc = words(&rpc);
    assert_eq!(rpc.len(), call_header::MAX_LEN);
    assert!(long_call_allows(&rpc, &[840]));
    assert!(!long_call_allows(&rpc, &[836]));
    assert!(!long_call_allows(&rpc[..836], &[840]));
}

#[test]
fn r8166_8_2_2_3_1_responder_accepts_no_chunk_under_integrity() {
    let rpc = |credential: &[u32]| {
        words(&[&[XID, CALL, 2, 100_003, 4, 1], credential, &[0; 12]].concat())
    };
    // Version, procedure, sequence number, service, handle.
    for (service, unprotected) in [(1, true), (2, false), (3, false), (0, false), (4, false)] {
        let rpc = rpc(&[6, 20, 1, 0, 77, service, 0]);
        assert_eq!(long_call_allows(&rpc, &[4096]), unprotected);
        assert!(long_call_allows(&rpc, &[]));
    }
    assert!(long_call_allows(&rpc(&[0, 0]), &[4096]));
    assert!(long_call_allows(&rpc(&[1, 20, 1, 0, 77, 3, 0]), &[4096]));
    // The service is beyond the end of the credential.
    assert!(!long_call_allows(&rpc(&[6, 4, 1, 0]), &[4096]));
}

#[test]
fn r8166_8_2_2_4_1_every_field_may_be_hostile() {
    let a = [7, 64, 0, 0x1000];
    let lists: [&[&[u32]]; 4] = [
        &[&[0, 0, 0]],
        &[&[1, 16], &a, &[1, 16], &a, &[0, 0, 0]],
        &[&[0, 1, 2], &a, &a, &[1, 0, 0, 0]],
        &[&[1, 0], &a, &[1, 8], &a, &[0, 1, 1], &a, &[0, 1, 1], &a],
    ];
    let hostile = [
        0,
        1,
        2,
        3,
        4,
        5,
        28,
        0x0fff_ffff,
        0x1000_0000,
        0x7fff_ffff,
        0xffff_fffc,
        u32::MAX,
    ];
    let mut answered = 0;
    for lists in lists {
        for (procedure, msg_type) in [(0, CALL), (0, REPLY), (1, CALL)] {
            let payload = rpc(msg_type);
            let body = [lists, &[&payload[..]]].concat();
            let good = message(procedure, &body);
            for (at, value) in (0..good.len() / 4).flat_map(|at| hostile.map(|v| (at, v))) {
                let mut bad = good.clone();
                bad[at * 4..at * 4 + 4].copy_from_slice(&value.to_be_bytes());
                for len in [bad.len(), bad.len() / 2, 28, 27] {
                    answered += process(&bad[..len]);
                }
            }
        }
    }
    assert!(answered > 0);
}

/// Runs all decisions of both ends for a message. Returns 1 if the responder answers it with an
/// error.
fn process(bytes: &[u8]) -> u32 {
    use rpcrdma_core::engine::inbound::from_client;
    use rpcrdma_core::engine::inbound::from_server;
    use rpcrdma_core::engine::inbound::FromClient;
    use rpcrdma_core::engine::inbound::FromServer;
    use rpcrdma_core::engine::inbound::Response;
    use rpcrdma_core::engine::requester::call::XdrLens;
    use rpcrdma_core::engine::requester::match_reply::locate;
    use rpcrdma_core::engine::requester::match_reply::OfferedChunks;
    use rpcrdma_core::engine::requester::match_reply::ReplyLocation;
    use rpcrdma_core::engine::requester::placement::Placement;
    use rpcrdma_core::engine::responder::reassembly::Assembly;
    use rpcrdma_core::engine::responder::reassembly::Bounds;
    use rpcrdma_core::engine::responder::remote_inv::handle_to_invalidate;

    let own = [segment(7, 64, 0x1000)];
    if let Ok(FromServer::Reply(reply)) = from_server(bytes, PULLED) {
        let offered = OfferedChunks {
            write: own,
            reply: own,
        };
        if let Ok(ReplyLocation::Inline { payload, by_write }) = locate(&reply, offered) {
            assert!(by_write <= 64);
            let room = XdrLens {
                head: 16,
                data: 64,
                page_offset: 0,
                tail: 8,
            };
            let placement = Placement::with_write_chunk(payload.len(), by_write, &room);
            assert!(placement.length <= 16 + 64 + 8);
        }
    }
    match from_client(bytes, PLAIN) {
        Ok(FromClient::Call(call)) => {
            let bounds = Bounds {
                message: 1 << 20,
                max_inline: 4096,
                chunks: 16,
                segments: 256,
            };
            let inline = call.payload.map(<[u8]>::len);
            if let Ok(Some(assembly)) = Assembly::plan(inline, call.chunks.reads, &bounds) {
                assert!(assembly.parts().count() < 1000);
            }
            let results = [Payload {
                offset: 100,
                length: 60,
            }];
            let shape = ReplyShape {
                length: 500,
                protected: false,
            };
            let limits = ReplyLimits {
                threshold: 1024,
                refuses_unused: false,
                exposed_segments: 0,
            };
            if let Ok(reply) = reply::plan(&call.chunks, &results, &shape, &limits) {
                assert!(reply.encode(call.xid, 1, [], &mut [0; 1024]).is_ok());
            }
            let _ = handle_to_invalidate(&call.chunks);
            0
        }
        Err(Response::Answer(_)) => 1,
        _ => 0,
    }
}
