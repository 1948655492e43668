// SPDX-License-Identifier: GPL-2.0

//! Matches any Reply with a Call that offered chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: ([u16; 3], [u16; 3], &[u8])| {
    let (write, reply, bytes) = input;
    rpcrdma_oracle::match_reply(bytes, write, reply);
});
