// SPDX-License-Identifier: GPL-2.0

//! A cursor over a buffer that takes XDR words.
//!
//! Everything here fails with [`Overflow`] alone, and then writes nothing.

use super::WORD;

/// The buffer ended before the item did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// Appends big-endian words to a buffer.
///
/// # Invariants
///
/// `length` is at most `bytes.len()`.
#[derive(Debug)]
pub struct Writer<'b> {
    bytes: &'b mut [u8],
    length: usize,
}

impl<'b> Writer<'b> {
    /// Starts at the front of `bytes`.
    #[inline]
    pub fn new(bytes: &'b mut [u8]) -> Self {
        // INVARIANT: nothing has been written.
        Self { bytes, length: 0 }
    }

    /// How many bytes have been written.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Appends `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self, value: [u8; N]) -> Result<(), Overflow> {
        let free = self.bytes.get_mut(self.length..).ok_or(Overflow)?;
        *free.first_chunk_mut::<N>().ok_or(Overflow)? = value;
        // INVARIANT: `free` had at least `N` bytes after `length`.
        self.length += N;
        Ok(())
    }

    /// Appends a word.
    #[inline]
    pub fn word(&mut self, value: u32) -> Result<(), Overflow> {
        self.array(value.to_be_bytes())
    }

    /// Appends words.
    #[inline]
    pub fn words<const N: usize>(&mut self, values: [u32; N]) -> Result<(), Overflow> {
        let free = self.bytes.get_mut(self.length..).ok_or(Overflow)?;
        let place = free.get_mut(..N * WORD).ok_or(Overflow)?;
        for (place, value) in place.chunks_exact_mut(WORD).zip(values) {
            place.copy_from_slice(&value.to_be_bytes());
        }
        // INVARIANT: `free` had as many bytes after `length`.
        self.length += N * WORD;
        Ok(())
    }

    /// Replaces a word written earlier, at byte `at`.
    #[inline]
    pub fn replace_word(&mut self, at: usize, value: u32) -> Result<(), Overflow> {
        let written = self.bytes.get_mut(..self.length).ok_or(Overflow)?;
        let place = written.get_mut(at..).ok_or(Overflow)?;
        *place.first_chunk_mut().ok_or(Overflow)? = value.to_be_bytes();
        Ok(())
    }
}
