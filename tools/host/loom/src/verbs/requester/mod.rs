// SPDX-License-Identifier: GPL-2.0

//! `rust/verbs/requester`.

#[path = "../../../../../../rust/verbs/requester/sendctx_ring.rs"]
mod sendctx_ring;

mod ring;
