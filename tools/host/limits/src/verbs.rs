// SPDX-License-Identifier: GPL-2.0

//! Plain values of the room of that name.

#[path = "../../../../rust/verbs/sizes.rs"]
mod sizes;

pub(crate) use sizes::DeviceAttrs;
pub(crate) use sizes::QueueDepths;
pub(crate) use sizes::SenderSizes;
