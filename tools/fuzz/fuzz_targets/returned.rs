// SPDX-License-Identifier: GPL-2.0

//! Any Reply to a Call that offered chunks: no more is believed than was offered.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: ([u16; 3], [u16; 3], &[u8])| {
    let (write, reply, bytes) = input;
    rpcrdma_oracle::returned(bytes, write, reply);
});
