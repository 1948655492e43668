// SPDX-License-Identifier: GPL-2.0

//! Classifies any message at both ends, with and without extensions.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    rpcrdma_oracle::inbound(bytes, false);
    rpcrdma_oracle::inbound(bytes, true);
});
