// SPDX-License-Identifier: GPL-2.0

//! Any Call: what is pulled for it is what the model says.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| rpcrdma_oracle::assembly(bytes));
