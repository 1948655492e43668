// SPDX-License-Identifier: GPL-2.0

//! Owned buffers that C keeps for a while.

use core::{
    ffi::c_void,
    ptr::NonNull, //
};

use crate::bindings::kvec;

/// An owned buffer that can be given up as a plain pointer and taken back from it.
///
/// # Safety
///
/// The bytes stay in place until the buffer is dropped, also while it is given up. They may be read
/// and written through [`ForeignBuf::as_mut_ptr`] while there is no reference to them: SUNRPC, for
/// one, decrypts a message where it lies.
pub(crate) unsafe trait ForeignBuf: Sized + Send + 'static {
    /// Gives the buffer up.
    fn park(self) -> NonNull<c_void>;

    /// Takes the buffer back.
    ///
    /// # Safety
    ///
    /// `raw` comes from [`Self::park`], and this is its only way back.
    unsafe fn unpark(raw: NonNull<c_void>) -> Self;

    /// The bytes; C has no business with them while the result is used.
    fn bytes(&self) -> &[u8];

    /// Where the bytes are.
    fn as_mut_ptr(&self) -> *mut u8;

    /// Where C finds `part` of the [bytes](Self::bytes), to read it and to write it.
    #[inline]
    fn place_of(&self, part: &[u8]) -> kvec {
        let base = self.as_mut_ptr().with_addr(part.as_ptr().addr());
        kvec {
            iov_base: base.cast(),
            iov_len: part.len(),
        }
    }
}
