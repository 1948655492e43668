// SPDX-License-Identifier: GPL-2.0

//! Arithmetic of the Receive Queue.

/// How many Receives to post now, so that doorbells are rung in batches.
///
/// `posted` stand, `needed` must stand, and up to `batch` more are posted each time that the number
/// falls below. The Receive Queue therefore needs `needed + batch` entries.
#[inline]
pub const fn refill(posted: u32, needed: u32, batch: u32) -> u32 {
    match needed.checked_sub(posted) {
        None | Some(0) => 0,
        Some(missing) => missing.saturating_add(batch),
    }
}
