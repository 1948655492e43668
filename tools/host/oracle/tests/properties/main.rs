// SPDX-License-Identifier: GPL-2.0

//! The oracles with generated inputs: well-formed, nearly well-formed, and random.
//!
//! `PROPTEST_CASES` sets the number of inputs. `PROPTEST_RNG_SEED` repeats a run.

mod messages;
mod shapes;

use messages::*;
use proptest::prelude::*;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::engine::responder::reply::ReplyShape;
use rpcrdma_oracle as oracle;
use shapes::*;

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), pulled: bool) {
        oracle::header(&bytes);
        oracle::inbound(&bytes, pulled);
        oracle::reassembly(&bytes);
        oracle::private_data(&bytes);
        let shape = ReplyShape {
            length: 100,
            protected: false,
        };
        let limits = ReplyLimits {
            threshold: 1024,
            refuses_unused: false,
            exposed_segments: 3,
        };
        oracle::reply(&bytes, &[], &shape, &limits);
    }

    #[test]
    fn messages_decode_to_what_was_encoded(message in message(), pulled: bool) {
        oracle::header(&message.bytes());
        oracle::inbound(&message.bytes(), pulled);
        prop_assert!(message.decodes());
    }

    #[test]
    fn damaged_messages_never_panic(
        message in message(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        cuts: bool,
        pulled: bool,
    ) {
        let mut bytes = message.bytes();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        oracle::header(&bytes);
        oracle::inbound(&bytes, pulled);
        oracle::reassembly(&bytes);
    }

    #[test]
    fn parts_tile_the_call(call in call_with_reads()) {
        oracle::reassembly(&call.bytes());
    }

    #[test]
    fn reduced_calls_are_reassembled(call in reduced_call()) {
        prop_assert!(call.assembles(), "a legal Call was refused");
        oracle::reassembly(&call.message.bytes());
    }

    #[test]
    fn inline_roundup_does_not_change_the_call(call in reduced_call(), extra in 0usize..8) {
        if let Some(call) = call.with_inline_roundup() {
            prop_assert!(call.assembles(), "a Call with inline roundup was refused");
            oracle::reassembly(&call.message.bytes());
        }
        oracle::reassembly(&call.with_inline_bytes(extra).bytes());
    }

    #[test]
    fn replies_arrive_as_they_were_sent(
        call in call_with_writes(),
        results in results(),
        more in 0u32..300,
        protected: bool,
        threshold in 200u32..4096,
        refuses_unused: bool,
        exposed_segments in 0u32..6,
    ) {
        let end = results.last().map_or(0, |item| item.offset + item.length.next_multiple_of(4));
        let length = end + more;
        let shape = ReplyShape {
            length,
            protected,
        };
        let limits = ReplyLimits {
            threshold,
            refuses_unused,
            exposed_segments,
        };
        oracle::reply(&call.bytes(), &results, &shape, &limits);
    }

    #[test]
    fn replies_of_any_shape_are_planned_or_refused(
        call in call_with_writes(),
        results in wild_results(),
        length: u32,
        protected: bool,
        threshold in 0u32..300_000,
        refuses_unused: bool,
        exposed_segments: u32,
    ) {
        let shape = ReplyShape {
            length,
            protected,
        };
        let limits = ReplyLimits {
            threshold,
            refuses_unused,
            exposed_segments,
        };
        oracle::reply(&call.bytes(), &results, &shape, &limits);
    }

    #[test]
    fn replies_cannot_return_more_than_offered(
        reply in returned_reply(),
        write in offered_lengths(),
        chunk in offered_lengths(),
    ) {
        oracle::match_reply(&reply.bytes(), write, chunk);
    }

    #[test]
    fn exposed_replies_are_counted_as_owed(count in 1usize..6, events in exposed_events()) {
        oracle::exposed(count, &events);
    }

    #[test]
    fn history_follows_recent_replies(long in proptest::collection::vec(any::<bool>(), 0..60)) {
        oracle::history(&long);
    }

    #[test]
    fn plans_fit_their_thresholds(shape in call_shape(), limits in limits()) {
        oracle::call(&shape, &limits);
    }

    #[test]
    fn arbitrary_plans_never_panic(shape in wild_call_shape(), limits in wild_limits()) {
        let shape: CallShape = shape;
        let _ = rpcrdma_core::engine::requester::call::plan(&shape, &limits);
    }

    #[test]
    fn placed_replies_are_the_sent_stream(
        payload in 0u16..600,
        by_write in 0u16..600,
        head in 0u32..300,
        data in 0u32..600,
        tail in 0u32..100,
    ) {
        let room = XdrLens { head, data, page_offset: 0, tail };
        oracle::placement(payload, by_write, &room);
    }

    #[test]
    fn private_data_is_found_among_other_bytes(
        before in proptest::collection::vec(any::<u8>(), 0..20),
        data in private_data(),
        after in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = before;
        bytes.extend(data);
        bytes.extend(after);
        oracle::private_data(&bytes);
    }
}
