// SPDX-License-Identifier: GPL-2.0

//! Owned buffers that C keeps for a while.

use core::ffi::c_void;
use core::ptr::NonNull;

/// An owned buffer that can be given up as a plain pointer and taken back from it.
///
/// # Safety
///
/// What [`Parked::octets`] returns stays in place, readable, until the buffer is dropped, also while it
/// is given up. It may change only through an exclusive reference to the buffer.
pub(crate) unsafe trait Parked: Sized + Send + 'static {
    /// Gives the buffer up.
    fn park(self) -> NonNull<c_void>;

    /// Takes the buffer back.
    ///
    /// # Safety
    ///
    /// `raw` comes from [`Self::park`], and this is its only way back.
    unsafe fn unpark(raw: NonNull<c_void>) -> Self;

    /// The octets.
    fn octets(&self) -> &[u8];
}
