// SPDX-License-Identifier: GPL-2.0

//! Any message: decoding it does no harm, and encoding what it says gives it back.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| rpcrdma_oracle::header(bytes));
