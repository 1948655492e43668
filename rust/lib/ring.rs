// SPDX-License-Identifier: GPL-2.0

//! A queue of limited length.

use kernel::prelude::*;

/// A ring of entries, the oldest of which is removed first.
pub(crate) struct Ring<T: Copy> {
    entries: KVVec<T>,
    first: usize,
    count: usize,
}

impl<T: Copy> Ring<T> {
    /// An empty ring with as many entries as `entries`.
    pub(crate) const fn new(entries: KVVec<T>) -> Self {
        Self {
            entries,
            first: 0,
            count: 0,
        }
    }

    /// Appends `entry`; `false` if the ring is full.
    pub(crate) fn push(&mut self, entry: T) -> bool {
        let end = self.index(self.count);
        let full = self.count == self.entries.len();
        match self.entries.get_mut(end) {
            Some(free) if !full => {
                *free = entry;
                self.count += 1;
                true
            }
            _ => false,
        }
    }

    /// The oldest entry.
    pub(crate) fn first(&self) -> Option<T> {
        let first = self.entries.get(self.first).copied();
        first.filter(|_| self.count > 0)
    }

    /// Removes the oldest entry, if any.
    pub(crate) fn pop(&mut self) {
        if self.count > 0 {
            self.first = self.index(1);
            self.count -= 1;
        }
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// The index of the entry `distance` behind the oldest one.
    fn index(&self, distance: usize) -> usize {
        let index = self.first + distance;
        index.checked_sub(self.entries.len()).unwrap_or(index)
    }
}
