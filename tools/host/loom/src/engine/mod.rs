// SPDX-License-Identifier: GPL-2.0

//! `rust/engine`.

#[allow(unreachable_pub, reason = "other crates use the file, too")]
#[path = "../../../../../rust/engine/credit.rs"]
pub(crate) mod credit;
#[allow(unreachable_pub, reason = "other crates use the file, too")]
#[path = "../../../../../rust/engine/stall.rs"]
pub(crate) mod stall;
