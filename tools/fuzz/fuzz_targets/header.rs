// SPDX-License-Identifier: GPL-2.0

//! Decodes any message, and encodes the result again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| rpcrdma_oracle::header(bytes));
