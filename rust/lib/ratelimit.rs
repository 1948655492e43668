// SPDX-License-Identifier: GPL-2.0

//! The rate limit of the networking stack's log messages.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h)

use crate::bindings;

/// `net_ratelimit()`: whether one more message may be logged now.
///
/// The limit (`net.core.message_cost`, `net.core.message_burst`) is one for the whole networking
/// stack. Runs in any context.
pub(crate) fn net_ratelimit() -> bool {
    // SAFETY: Takes no argument, and may be called in any context.
    unsafe { bindings::net_ratelimit() != 0 }
}
