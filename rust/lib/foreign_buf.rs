// SPDX-License-Identifier: GPL-2.0

//! Owned buffers that C code keeps as a pointer, and whose bytes it accesses meanwhile.
//!
//! `kernel::types::ForeignOwnable` covers the ownership, but says nothing about the bytes.

use kernel::types::ForeignOwnable;

use crate::bindings::kvec;

/// An owned buffer whose bytes C code may access.
///
/// # Safety
///
/// The bytes stay in place until the buffer is dropped, also while it is foreign-owned. C code may
/// read and write them through [`ForeignBuf::as_mut_ptr`] while there is no reference to them: for
/// example, SUNRPC decrypts a message in place.
pub(crate) unsafe trait ForeignBuf: ForeignOwnable + Send + 'static {
    /// The bytes. C code must not write them while the result is in use.
    fn bytes(&self) -> &[u8];

    /// The first byte.
    fn as_mut_ptr(&self) -> *mut u8;

    /// The `kvec` with which C code reads and writes `part` of the [bytes](Self::bytes).
    #[inline]
    fn kvec_of(&self, part: &[u8]) -> kvec {
        let base = self.as_mut_ptr().with_addr(part.as_ptr().addr());
        kvec {
            iov_base: base.cast(),
            iov_len: part.len(),
        }
    }
}
