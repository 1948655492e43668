// SPDX-License-Identifier: GPL-2.0

//! Generators of shapes, limits, private data and events.

use crate::messages::number;
use proptest::collection::vec;
use proptest::prelude::*;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_oracle as oracle;

/// Results in order that do not overlap.
pub(crate) fn results() -> impl Strategy<Value = Vec<Payload>> {
    vec((0u32..50, 0u32..500), 0..5).prop_map(|items| {
        let mut at = 0;
        items
            .into_iter()
            .map(|(gap, length)| {
                let offset = at + gap * 4;
                at = offset + length.next_multiple_of(4);
                Payload { offset, length }
            })
            .collect()
    })
}

/// Results with arbitrary offsets and lengths.
pub(crate) fn wild_results() -> impl Strategy<Value = Vec<Payload>> {
    vec((number(), number()), 0..4).prop_map(|items| {
        items
            .into_iter()
            .map(|(offset, length)| Payload { offset, length })
            .collect()
    })
}

fn lens(most: u32) -> impl Strategy<Value = XdrLens> {
    (0u32..2000, 0..most, 0u32..5000, 0u32..300).prop_map(|(head, data, page_offset, tail)| {
        XdrLens {
            head: head * 4,
            data,
            page_offset,
            tail: (tail & !3) | (data.wrapping_neg() % 4),
        }
    })
}

fn shape(lens: impl Strategy<Value = XdrLens> + Clone) -> impl Strategy<Value = CallShape> {
    (
        lens.clone(),
        lens,
        any::<(bool, bool, bool)>(),
        any::<bool>(),
    )
        .prop_map(
            |(call, reply, (call_eligible, reply_eligible, protected), long_reply)| CallShape {
                call,
                call_eligible,
                reply,
                reply_eligible,
                protected,
                long_reply,
            },
        )
}

/// A Call with common lengths.
pub(crate) fn call_shape() -> impl Strategy<Value = CallShape> {
    shape(prop_oneof![lens(100), lens(10_000), lens(2_000_000)].boxed())
}

/// A Call with arbitrary lengths.
pub(crate) fn wild_call_shape() -> impl Strategy<Value = CallShape> {
    let lens = any::<(u32, u32, u32, u32)>().prop_map(|(head, data, page_offset, tail)| XdrLens {
        head,
        data,
        page_offset,
        tail,
    });
    shape(lens.boxed())
}

/// Limits of common devices and connections.
pub(crate) fn limits() -> impl Strategy<Value = CallLimits> {
    let threshold = || {
        prop_oneof![
            Just(1024u32),
            Just(4096),
            (1u32..=256).prop_map(|k| k * 1024)
        ]
    };
    (
        threshold(),
        threshold(),
        prop_oneof![Just(0u32), 0u32..10_000],
        threshold(),
        3u32..30,
        1u32..20,
        1u32..300,
        12u32..17,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(
                send,
                receive,
                pull_up,
                buf_len,
                sges,
                segments,
                segment_pages,
                page_shift,
                pulled_replies,
                room_for_roundup,
            )| CallLimits {
                send,
                receive,
                pull_up,
                buf_len,
                sges,
                segments,
                segment_pages,
                page_shift,
                pulled_replies,
                room_for_roundup,
            },
        )
}

/// Arbitrary limits.
pub(crate) fn wild_limits() -> impl Strategy<Value = CallLimits> {
    (any::<[u32; 8]>(), any::<bool>(), any::<bool>()).prop_map(
        |(
            [send, receive, pull_up, buf_len, sges, segments, segment_pages, page_shift],
            pulled_replies,
            room_for_roundup,
        )| CallLimits {
            send,
            receive,
            pull_up,
            buf_len,
            sges,
            segments,
            segment_pages,
            page_shift,
            pulled_replies,
            room_for_roundup,
        },
    )
}

/// Private data that may be valid, or damaged.
pub(crate) fn private_data() -> impl Strategy<Value = Vec<u8>> {
    (
        prop_oneof![3 => Just(0xf6u8), 1 => any::<u8>()],
        prop_oneof![3 => Just(1u8), 1 => any::<u8>()],
        any::<[u8; 3]>(),
        5usize..=8,
    )
        .prop_map(|(first, version, [flags, send, receive], length)| {
            let mut bytes = vec![first, 0xab, 0x0e, 0x18, version, flags, send, receive];
            bytes.truncate(length);
            bytes
        })
}

/// Events at a responder that exposes Replies. XIDs and times are small, so that they collide.
pub(crate) fn exposed_events() -> impl Strategy<Value = Vec<oracle::Event>> {
    let event = prop_oneof![
        3 => (0u32..8).prop_map(oracle::Event::Expose),
        3 => (0usize..8, 0u64..40).prop_map(|(which, time)| oracle::Event::Post { which, time }),
        2 => (0u32..8).prop_map(oracle::Event::Done),
        1 => (0u64..30).prop_map(oracle::Event::Passes),
        3 => (0usize..8).prop_map(oracle::Event::Released),
        1 => (0usize..8).prop_map(oracle::Event::Withdraw),
    ];
    proptest::collection::vec(event, 0..80)
}
