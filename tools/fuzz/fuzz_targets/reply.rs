// SPDX-License-Identifier: GPL-2.0

//! Plans Replies of any shape to any Call.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::engine::responder::reply::ReplyShape;

/// For each result: the gap before it and its length, in bytes.
type Results = [(u8, u16); 3];

fuzz_target!(|input: (Results, u8, u16, bool, u16, u8, &[u8])| {
    let (results, count, rest, protected, threshold, exposed_segments, bytes) = input;
    let mut at = 0;
    let results: Vec<Payload> = results
        .iter()
        .take(usize::from(count % 4))
        .map(|(gap, length)| {
            let offset = at + u32::from(*gap);
            let length = u32::from(*length);
            at = offset + length.next_multiple_of(4);
            Payload { offset, length }
        })
        .collect();
    let shape = ReplyShape {
        length: at + u32::from(rest),
        protected,
    };
    let limits = ReplyLimits {
        threshold: u32::from(threshold),
        refuses_unused: count & 4 != 0,
        exposed_segments: u32::from(exposed_segments),
    };
    rpcrdma_oracle::reply(bytes, &results, &shape, &limits);
});
