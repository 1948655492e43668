// SPDX-License-Identifier: GPL-2.0

//! Received octets that outlive the handler that received them.

/// A received message that SUNRPC's consumer reads in place.
///
/// # Safety
///
/// What [`octets`](Self::octets) returns stays in place, unchanged, until the value is dropped or
/// borrowed mutably; moving the value does not move it.
pub(crate) unsafe trait StableOctets {
    /// The buffer.
    fn octets(&self) -> &[u8];
}
