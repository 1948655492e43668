// SPDX-License-Identifier: GPL-2.0

//! The low 8 bits of an rkey (`ib_update_fast_reg_key()`): a key is not reused for at least 96
//! registrations.
//!
//! A handle names one life of a region. That a peer has invalidated one is learnt after it
//! happened: by then the region may live again, and again after that, and its handle must not have
//! come back. So a byte that was in use is not drawn for a long time; which one is, of those that
//! are left, the peer cannot foresee.

/// For how many draws, at least, a byte does not come back. To have a stale invalidation name a
/// live handle, a peer would need that many uses of the region between the arrival of a message and
/// our looking at it.
const LIVES: u8 = 96;

/// The bytes that are not to be drawn.
#[derive(Clone)]
pub(in crate::verbs) struct RkeySequence {
    /// Those of the last draws, `count` of them.
    young: Set,
    /// Those of `LIVES` draws before these.
    old: Set,
    count: u8,
}

impl RkeySequence {
    /// For a region that has this `key`.
    pub(in crate::verbs) fn having(key: u8) -> Self {
        let mut young = Set::EMPTY;
        young.insert(key);
        Self {
            young,
            old: Set::EMPTY,
            count: 1,
        }
    }

    /// Draws a byte: the next behind one that was thrown which may be drawn. Of 256 at most
    /// `2 * LIVES` may not.
    #[inline]
    pub(in crate::verbs) fn draw(&mut self, thrown: u8) -> u8 {
        let mut key = thrown;
        while self.young.has(key) || self.old.has(key) {
            key = key.wrapping_add(1);
        }
        if self.count == LIVES {
            self.old = core::mem::replace(&mut self.young, Set::EMPTY);
            self.count = 0;
        }
        self.young.insert(key);
        self.count += 1;
        key
    }
}

/// A set of bytes.
#[derive(Clone)]
struct Set([u64; 4]);

impl Set {
    const EMPTY: Self = Self([0; 4]);

    #[inline]
    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & 1 << (byte & 63) != 0
    }

    #[inline]
    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
}
