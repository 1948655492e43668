// SPDX-License-Identifier: GPL-2.0

//! `rust/client`.

#[path = "../../../../../rust/client/recv_queue.rs"]
mod recv_queue;

mod receives;
