// SPDX-License-Identifier: GPL-2.0

//! The peer's memory.

/// An address in the peer's memory.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    /// The rkey.
    pub(crate) handle: u32,
    /// The address that goes with the rkey.
    pub(crate) offset: u64,
}
