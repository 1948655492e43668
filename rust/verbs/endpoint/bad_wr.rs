// SPDX-License-Identifier: GPL-2.0

//! What a device leaves of a chain of work requests that it refuses.
//!
//! A chain is in one of three hands afterwards. What the device has taken comes back by its
//! completions. What it has not taken is at once that of whoever posted it. Of a chain of which it
//! names no part nothing is known: siw has taken all of one, if it then finds no processor to send
//! it with.

use core::ptr;

/// What of a refused chain is still that of whoever posted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verbs) enum BadWr {
    /// All of it.
    First,
    /// The last work request, but not the first.
    Last,
    /// Perhaps none. It stays in place, until it completes or for good: its connection has to be
    /// ended.
    Unknown,
}

impl BadWr {
    /// Of the chain that starts with `first`, if the device says that `bad` is the first that it
    /// has not taken.
    pub(in crate::verbs) fn of<T>(first: *const T, bad: *const T) -> Self {
        if bad.is_null() {
            Self::Unknown
        } else if ptr::eq(bad, first) {
            Self::First
        } else {
            Self::Last
        }
    }
}
