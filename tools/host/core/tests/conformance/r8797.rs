// SPDX-License-Identifier: GPL-2.0

//! RFC 8797 and its draft: RDMA-CM private data, and Remote Invalidation.

use crate::support::*;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::agreement::ReadDepths;
use rpcrdma_core::engine::responder::remote_inv::handle_to_invalidate;
use rpcrdma_core::wire::extensions::Announcement;
use rpcrdma_core::wire::extensions::Offer;
use rpcrdma_core::wire::private_data::round_down;
use rpcrdma_core::wire::private_data::shrink;
use rpcrdma_core::wire::private_data::PrivateData;
use rpcrdma_core::wire::private_data::IDENTIFIER;
use rpcrdma_core::wire::private_data::LEN;
use rpcrdma_core::wire::private_data::MAX_SIZE;
use rpcrdma_core::wire::private_data::MIN_SIZE;
use rpcrdma_core::wire::ChunkLists;

const GOLDEN: [u8; 8] = [0xf6, 0xab, 0x0e, 0x18, 0x01, 0x01, 0x03, 0x03];

fn data(remote_invalidation: bool, send_size: u32, receive_size: u32) -> PrivateData {
    PrivateData {
        remote_invalidation,
        send_size,
        receive_size,
    }
}

#[test]
fn cm0_2_1_1_threshold_is_the_minimum() {
    let own = data(true, 8192, 4096);
    let peer = data(true, 2048, 4096);
    let agreement = Agreement::between(&own, &peer);
    assert_eq!((agreement.send, agreement.receive), (4096, 2048));
}

/// What an end that sends `own` and `offer` computes from the private data that it has received.
fn computed(own: &PrivateData, offer: Offer, received: &[u8]) -> (Agreement, bool) {
    let depths = ReadDepths {
        initiator_depth: 1,
        responder_resources: 1,
    };
    let theirs = Offer::of_peer(received);
    (
        Agreement::between(own, &PrivateData::of_peer(received)),
        Extensions::between(&offer, &theirs, &depths).pulled_replies,
    )
}

#[test]
fn cm0_2_1_1_both_ends_compute_the_same() {
    let sizes = [1024, 4096, MAX_SIZE];
    let mut ends = Vec::new();
    for remote_invalidation in [false, true] {
        for pulled_replies in [false, true] {
            for send in sizes {
                for receive in sizes {
                    let own = data(remote_invalidation, send, receive);
                    ends.push((own, Offer { pulled_replies }));
                }
            }
        }
    }
    for client in &ends {
        for server in &ends {
            let sent = [client, server].map(|(own, offer)| Announcement::new(own, offer));
            let (at_client, pulls) = computed(&client.0, client.1, sent[1].as_bytes());
            let (at_server, exposes) = computed(&server.0, server.1, sent[0].as_bytes());
            assert_eq!(pulls, exposes);
            assert_eq!(pulls, client.1.pulled_replies && server.1.pulled_replies);
            let mirrored = Agreement {
                send: at_server.receive,
                receive: at_server.send,
                ..at_server
            };
            assert_eq!(at_client, mirrored);
        }
    }
}

#[test]
fn cm0_2_2_2_invalidation_needs_both_ends() {
    for own in [false, true] {
        for peer in [false, true] {
            let agreement = Agreement::between(&data(own, 4096, 4096), &data(peer, 4096, 4096));
            assert_eq!(agreement.remote_invalidation, own && peer);
        }
    }
}

#[test]
fn cm0_3_1_1_layout() {
    assert_eq!(data(true, 4096, 4096).encode(), GOLDEN);
    assert_eq!(PrivateData::find(&GOLDEN), Some(data(true, 4096, 4096)));
    assert_eq!(LEN, 8);
    // Send size before receive size.
    assert_eq!(data(false, 1024, 262_144).encode()[4..], [1, 0, 0, 255]);
}

#[test]
fn cm0_3_1_2_magic_is_big_endian() {
    assert_eq!(IDENTIFIER, 0xf6ab_0e18_u32.to_be_bytes());
    let mut swapped = GOLDEN;
    swapped[..4].reverse();
    assert_eq!(PrivateData::find(&swapped), None);
}

#[test]
fn cm0_3_1_3_bytes_after_the_first_eight_are_ignored() {
    let mut longer = GOLDEN.to_vec();
    longer.extend([0xff; 100]);
    assert_eq!(PrivateData::find(&longer), Some(data(true, 4096, 4096)));
}

#[test]
fn cm0_3_1_1_1_flag_is_bit_15() {
    assert_eq!(data(true, 1024, 1024).encode()[5], 0x01);
    assert_eq!(data(false, 1024, 1024).encode()[5], 0x00);
}

#[test]
fn cm0_3_1_1_2_reserved_bits_are_clear_when_sent() {
    for flag in [false, true] {
        assert_eq!(data(flag, 4096, 4096).encode()[5] & 0xfe, 0);
    }
}

#[test]
fn r8797_4_3_reserved_bits_are_ignored_on_receipt() {
    for flags in 0..=255 {
        let mut bytes = GOLDEN;
        bytes[5] = flags;
        let found = PrivateData::find(&bytes).unwrap();
        assert_eq!(found, data(flags & 1 == 1, 4096, 4096));
    }
}

#[test]
fn cm0_3_1_2_1_size_codes() {
    for (size, code, rounded) in [
        (1024, 0, 1024),
        (4096, 3, 4096),
        (65_536, 63, 65_536),
        (262_144, 255, 262_144),
        (5000, 3, 4096),
        (2047, 0, 1024),
        // Sizes outside the range are clamped.
        (1, 0, 1024),
        (0, 0, 1024),
        (1 << 20, 255, 262_144),
        (u32::MAX, 255, 262_144),
    ] {
        let bytes = data(false, size, size).encode();
        assert_eq!(bytes[6..], [code, code], "{size}");
        assert_eq!(
            PrivateData::find(&bytes),
            Some(data(false, rounded, rounded))
        );
    }
}

#[test]
fn cm0_3_2_1_other_versions_are_ignored() {
    for version in [0, 2, 3, 255] {
        let mut bytes = GOLDEN;
        bytes[4] = version;
        assert_eq!(PrivateData::find(&bytes), None);
        assert_eq!(PrivateData::of_peer(&bytes), data(false, 1024, 1024));
    }
}

#[test]
fn cm0_4_1_defaults_if_missing_or_malformed() {
    let default = data(false, 1024, 1024);
    for bytes in [&[][..], &[0; 8], &[0xff; 56], &GOLDEN[..7], &GOLDEN[1..]] {
        assert_eq!(PrivateData::of_peer(bytes), default);
    }
}

#[test]
fn r8797_4_2_short_private_data_has_no_message() {
    for length in 0..8 {
        assert_eq!(PrivateData::find(&GOLDEN[..length]), None);
    }
}

#[test]
fn r8797_4_4_version_one_is_eight_bytes() {
    assert_eq!(data(true, 4096, 4096).encode().len(), 8);
    // Any bytes may follow, or none.
    for length in 8..64 {
        let mut bytes = vec![0; length];
        bytes[..8].copy_from_slice(&GOLDEN);
        assert!(PrivateData::find(&bytes).is_some());
    }
}

#[test]
fn r8797_4_2_1_sizes_are_rounded_down() {
    for size in (1024..300_000).step_by(37) {
        let decoded = PrivateData::find(&data(false, size, size).encode()).unwrap();
        assert!(decoded.send_size <= size);
        assert!(decoded.receive_size <= size);
        assert!(decoded.receive_size % 1024 == 0);
        assert!(size - decoded.receive_size < 1024 || decoded.receive_size == 262_144);
    }
}

#[test]
fn r8797_4_2_1_sizes_in_use_are_those_announced() {
    assert_eq!((MIN_SIZE, MAX_SIZE), (1024, 262_144));
    for size in [0, 1023, 1024, 2047, 5000, 262_144, 300_000, u32::MAX] {
        let announced = PrivateData::of_peer(&data(false, size, 1024).encode());
        assert_eq!(round_down(size), announced.send_size);
    }
    assert_eq!(PrivateData::of_peer(&GOLDEN), data(true, 4096, 4096));
}

#[test]
fn sizes_shrink_by_half_to_the_smallest() {
    let shrunk = |mut send, mut receive| {
        let smaller = shrink(&mut send, &mut receive, 4096);
        (smaller, send, receive)
    };
    assert_eq!(shrunk(65_536, 8192), (true, 32_768, 8192));
    assert_eq!(shrunk(8192, 65_536), (true, 8192, 32_768));
    assert_eq!(shrunk(65_536, 65_536), (true, 32_768, 32_768));
    // Half of the size is rounded down to one that can be encoded.
    assert_eq!(shrunk(11_264, 1024), (true, 5120, 1024));
    assert_eq!(shrunk(5120, 4096), (true, 4096, 4096));
    assert_eq!(shrunk(4096, 4096), (false, 4096, 4096));
    assert_eq!(shrunk(1024, 2048), (false, 1024, 2048));
}

#[test]
fn r8797_4_1_3_either_flag_clear_means_plain_send() {
    let clear = Agreement::between(&data(true, 4096, 4096), &PrivateData::of_peer(&[]));
    assert!(!clear.remote_invalidation);
}

#[test]
fn r8797_5_2_1_identifier_at_any_offset() {
    for offset in 0..48 {
        let mut bytes = vec![0xa5; offset];
        bytes.extend(GOLDEN);
        assert!(PrivateData::find(&bytes).is_some(), "{offset}");
        bytes.extend([0; 13]);
        assert!(PrivateData::find(&bytes).is_some(), "{offset}");
    }
    // An identifier that is not followed by a message does not hide the next one.
    let mut bytes = vec![0xf6, 0xab, 0x0e, 0x18, 0xf6, 0xab];
    bytes.extend(GOLDEN);
    assert_eq!(PrivateData::find(&bytes), Some(data(true, 4096, 4096)));
}

#[test]
fn r8797_5_2_2_no_identifier_no_message() {
    let mut bytes = GOLDEN;
    for index in 0..4 {
        bytes[index] ^= 1;
        assert_eq!(PrivateData::of_peer(&bytes), PrivateData::default());
        bytes[index] ^= 1;
    }
}

#[test]
fn r8797_5_2_3_truncated_message_is_ignored() {
    for missing in 1..=4 {
        let mut bytes = vec![0; 20];
        bytes.extend(&GOLDEN[..8 - missing]);
        assert_eq!(PrivateData::find(&bytes), None);
    }
}

#[test]
fn r8797_6_1_another_block_is_ignored() {
    let mut bytes = GOLDEN.to_vec();
    bytes.extend([0x12, 0x34, 0x56, 0x78, 1, 0, 0, 0]);
    assert_eq!(PrivateData::find(&bytes), Some(data(true, 4096, 4096)));
}

/// The handle chosen for a Call whose lists have segments of these handles and lengths.
fn choose(reads: &[(u32, u32)], writes: &[(u32, u32)], reply: &[(u32, u32)]) -> Option<u32> {
    let mut body = Vec::new();
    for (handle, length) in reads {
        body.extend([1, 8]);
        body.extend(hloo(*handle, *length, 0));
    }
    body.push(0);
    if !writes.is_empty() {
        body.extend([1, writes.len() as u32]);
    }
    for (handle, length) in writes {
        body.extend(hloo(*handle, *length, 0));
    }
    body.push(0);
    match reply {
        [] => body.push(0),
        segments => body.extend([1, segments.len() as u32]),
    }
    for (handle, length) in reply {
        body.extend(hloo(*handle, *length, 0));
    }
    let bytes = message(0, &[&body, &rpc(CALL)]);
    handle_to_invalidate(&call_at_server(&bytes).chunks)
}

#[test]
fn r8797_4_1_2_chosen_handle_belongs_to_the_call() {
    assert_eq!(handle_to_invalidate(&ChunkLists::default()), None);
    assert_eq!(choose(&[(1, 100)], &[], &[]), Some(1));
    assert_eq!(choose(&[], &[(2, 100)], &[]), Some(2));
    assert_eq!(choose(&[], &[], &[(3, 100)]), Some(3));
}

#[test]
fn r8797_4_1_2_empty_chunks_have_no_handle() {
    let read = hloo(1, 100, 0);
    for lists in [
        // A Write chunk without segments, a Reply chunk, and both.
        &[0, 1, 0, 0, 0][..],
        &[0, 0, 1, 0],
        &[0, 1, 0, 1, 0, 0, 1, 0],
    ] {
        let bytes = message(0, &[lists, &rpc(CALL)]);
        assert_eq!(handle_to_invalidate(&call_at_server(&bytes).chunks), None);
        // The handle of another chunk is chosen.
        let bytes = message(0, &[&[1, 8], &read, lists, &rpc(CALL)]);
        assert_eq!(
            handle_to_invalidate(&call_at_server(&bytes).chunks),
            Some(1)
        );
    }
}

#[test]
fn ri3_4_3_1_largest_written_segment_is_chosen() {
    // Chunks to which the responder writes take precedence over Read chunks.
    assert_eq!(choose(&[(1, 9000)], &[(2, 100)], &[]), Some(2));
    assert_eq!(choose(&[], &[(2, 100), (3, 200)], &[]), Some(3));
    assert_eq!(choose(&[], &[(2, 100), (3, 100)], &[]), Some(2));
    assert_eq!(choose(&[], &[(2, 100)], &[(3, 200)]), Some(3));
    assert_eq!(choose(&[(1, 10), (4, 30), (5, 20)], &[], &[]), Some(4));
}

#[test]
fn ri3_4_3_1_pad_segments_are_not_chosen() {
    // Some requesters add a segment of at most four bytes to each Write chunk. Its registration is
    // permanent.
    assert_eq!(choose(&[], &[(2, 4093), (9, 4)], &[]), Some(2));
    assert_eq!(choose(&[], &[(9, 4)], &[]), None);
    assert_eq!(choose(&[], &[(2, 3), (9, 4)], &[]), None);
    assert_eq!(choose(&[(1, 4)], &[(9, 4)], &[]), Some(1));
    // Empty segments are not chosen.
    assert_eq!(choose(&[(1, 0)], &[(2, 0)], &[(3, 0)]), None);
}
