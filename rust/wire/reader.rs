// SPDX-License-Identifier: GPL-2.0

//! A cursor over received bytes that hands out XDR words.
//!
//! Everything here fails with [`Truncated`] alone, and then takes nothing.

/// The bytes ended before the item did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// Reads big-endian words from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes have not been read.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// What has not been read.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes the next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Truncated> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(array)
    }

    /// Takes the next word.
    #[inline]
    pub fn word(&mut self) -> Result<u32, Truncated> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Takes the next `length` bytes.
    #[inline]
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}
