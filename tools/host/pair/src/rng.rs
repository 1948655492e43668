// SPDX-License-Identifier: GPL-2.0

//! A pseudo-random generator.

/// A pseudo-random generator (xorshift64*). The seed determines all numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number from the whole range.
    pub fn any(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, which must not be zero.
    pub fn below(&mut self, limit: usize) -> usize {
        ((self.any() >> 33) as usize) % limit
    }

    /// A number from `low` to `high`, inclusive.
    pub fn range(&mut self, low: u32, high: u32) -> u32 {
        low + self.below((high - low + 1) as usize) as u32
    }

    /// `true` with a probability of 1 in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.any() >> 40) as u8).collect()
    }
}
