// SPDX-License-Identifier: GPL-2.0

//! How to allocate, and how that fails.

use core::fmt;
use core::ops::BitOr;

/// How to allocate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Whether the allocation may sleep.
    pub(crate) fn may_sleep(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the memory has to be cleared.
    pub(crate) fn clear(self) -> bool {
        self.0 & flags::__GFP_ZERO.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Flags.
pub mod flags {
    use super::Flags;

    /// May sleep.
    pub const GFP_KERNEL: Flags = Flags(1);
    /// Must not sleep.
    pub const GFP_ATOMIC: Flags = Flags(2);
    /// Must not sleep.
    pub const GFP_NOWAIT: Flags = Flags(4);
    /// Logs nothing.
    pub const __GFP_NOWARN: Flags = Flags(8);
    /// Clears the memory.
    pub const __GFP_ZERO: Flags = Flags(16);
}

/// There is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError;

/// A vector has no capacity for one more element, which this is.
pub struct PushError<T>(pub T);

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PushError")
    }
}

/// A vector has no such element.
#[derive(Debug)]
pub struct RemoveError;
