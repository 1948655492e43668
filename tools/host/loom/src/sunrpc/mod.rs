// SPDX-License-Identifier: GPL-2.0

//! `rust/sunrpc`.

#[path = "../../../../../rust/sunrpc/xprt/slot_state.rs"]
mod slot_state;

mod slot;
