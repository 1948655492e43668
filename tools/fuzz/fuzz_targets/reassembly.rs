// SPDX-License-Identifier: GPL-2.0

//! Reassembles any Call, and compares the parts with a model.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| rpcrdma_oracle::reassembly(bytes));
