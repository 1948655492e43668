// SPDX-License-Identifier: GPL-2.0

//! The low 8 bits of an rkey (`ib_update_fast_reg_key()`): a key is not reused for at least 96
//! registrations.
//!
//! An rkey names one registration of an MR. This end learns that the peer has invalidated an rkey
//! only after the fact. The MR may have been registered again by then, more than once, and must not
//! have the same rkey again. Therefore a key byte that was in use is not drawn for a long time. The
//! peer cannot predict which of the others is drawn.

/// Draws, at least, before a key byte is drawn again. For a stale invalidation to name a valid
/// rkey, the peer would need that many registrations of the MR between the arrival of a message and
/// its handling.
const GENERATIONS: u8 = 96;

/// The key bytes that must not be drawn.
#[derive(Clone)]
pub(super) struct RkeySequence {
    /// The bytes of the last `count` draws.
    recent: ByteSet,
    /// The bytes of the `GENERATIONS` draws before those.
    older: ByteSet,
    count: u8,
}

impl RkeySequence {
    /// For an MR whose rkey has the low byte `key`.
    pub(super) fn having(key: u8) -> Self {
        let mut recent = ByteSet::EMPTY;
        recent.insert(key);
        Self {
            recent,
            older: ByteSet::EMPTY,
            count: 1,
        }
    }

    /// Draws a key byte: the first one from `random` on that may be drawn. At most
    /// `2 * GENERATIONS` of the 256 may not.
    #[inline]
    pub(super) fn draw(&mut self, random: u8) -> u8 {
        let mut key = random;
        while self.recent.has(key) || self.older.has(key) {
            key = key.wrapping_add(1);
        }
        if self.count == GENERATIONS {
            self.older = core::mem::replace(&mut self.recent, ByteSet::EMPTY);
            self.count = 0;
        }
        self.recent.insert(key);
        self.count += 1;
        key
    }
}

/// A set of bytes.
#[derive(Clone)]
struct ByteSet([u64; 4]);

impl ByteSet {
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
