// SPDX-License-Identifier: GPL-2.0

//! Decodes any private data.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| rpcrdma_oracle::private_data(bytes));
