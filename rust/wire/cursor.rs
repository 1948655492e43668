// SPDX-License-Identifier: GPL-2.0

//! Cursors that read and write XDR words (RFC 4506).
//!
//! [`Reader`] takes words from the front of a received message; its methods fail only with
//! [`Truncated`], and then consume nothing. [`Writer`] appends words to a buffer; its methods fail
//! only with [`Overflow`], and then write nothing.

use core::mem;

use super::WORD;

/// The message ends before the item that was to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// The buffer ends before the item that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

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

    /// Number of bytes that have not been read.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes that have not been read.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if fewer than `N` bytes remain.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Truncated> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(array)
    }

    /// Reads the next word.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if less than a word remains.
    #[inline]
    pub fn word(&mut self) -> Result<u32, Truncated> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if fewer than `len` bytes remain.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Appends big-endian words to a buffer.
#[derive(Debug)]
pub struct Writer<'b> {
    /// The bytes that have not been written.
    free: &'b mut [u8],
    /// Number of bytes written.
    len: usize,
}

impl<'b> Writer<'b> {
    /// Starts at the front of `buf`.
    #[inline]
    pub fn new(buf: &'b mut [u8]) -> Self {
        Self { free: buf, len: 0 }
    }

    /// Number of bytes written.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Appends `len` bytes, which the caller writes.
    #[inline]
    fn take(&mut self, len: usize) -> Result<&'b mut [u8], Overflow> {
        if self.free.len() < len {
            return Err(Overflow);
        }
        let (taken, free) = mem::take(&mut self.free).split_at_mut(len);
        self.free = free;
        // NO-OVERFLOW: the sum is at most the length of the buffer.
        self.len = self.len.wrapping_add(len);
        Ok(taken)
    }

    /// Appends `N` bytes, which the caller writes.
    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<&'b mut [u8; N], Overflow> {
        self.take(N)?.first_chunk_mut().ok_or(Overflow)
    }

    /// Appends `N` bytes.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if fewer than `N` bytes are free.
    #[inline]
    pub fn array<const N: usize>(&mut self, value: [u8; N]) -> Result<(), Overflow> {
        *self.chunk()? = value;
        Ok(())
    }

    /// Appends a word.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if less than a word is free.
    #[inline]
    pub fn word(&mut self, value: u32) -> Result<(), Overflow> {
        self.array(value.to_be_bytes())
    }

    /// Appends `N` words.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if fewer than `N` words are free.
    #[inline]
    pub fn words<const N: usize>(&mut self, values: [u32; N]) -> Result<(), Overflow> {
        let dest = self.take(N * WORD)?;
        for (dest, value) in dest.chunks_exact_mut(WORD).zip(values) {
            dest.copy_from_slice(&value.to_be_bytes());
        }
        Ok(())
    }

    /// Appends the first `count` of `arrays`.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if they do not fit. Also if there are fewer; some are written then.
    #[inline]
    pub fn arrays<const N: usize>(
        &mut self,
        count: usize,
        mut arrays: impl Iterator<Item = [u8; N]>,
    ) -> Result<(), Overflow> {
        let dest = self.take(count.saturating_mul(N))?;
        for dest in dest.chunks_exact_mut(N) {
            dest.copy_from_slice(&arrays.next().ok_or(Overflow)?);
        }
        Ok(())
    }

    /// Appends a word that is set later.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if less than a word is free.
    #[inline]
    pub fn later_word(&mut self) -> Result<LaterWord<'b>, Overflow> {
        Ok(LaterWord(self.chunk()?))
    }
}

/// A word of a [`Writer`] that has not been set yet.
#[derive(Debug)]
pub struct LaterWord<'b>(&'b mut [u8; WORD]);

impl LaterWord<'_> {
    /// Sets the word.
    #[inline]
    pub fn set(self, value: u32) {
        *self.0 = value.to_be_bytes();
    }
}
