// SPDX-License-Identifier: GPL-2.0

//! The address of an `rpc_xprt` as text, for `/proc`, sysfs and side protocols such as NLM.
//!
//! C: transport.c, xprt_rdma_format_addresses(), xprt_rdma_format_addresses4()
//! C: transport.c, xprt_rdma_format_addresses6(), xprt_rdma_free_addresses()

use kernel::prelude::*;

use crate::{
    bindings,
    lib::sockaddr::{
        Family,
        SockAddr, //
    }, //
};

/// The index of the address text.
const ADDR: usize = bindings::rpc_display_format_t_RPC_DISPLAY_ADDR as usize;

/// The texts of one transport, in the transport's own memory.
///
/// # Invariants
///
/// - I1: The last byte of each array is NUL at any time, so a thread that reads a text while
///   another one changes it stays within the array.
pub(super) struct AddressStrings {
    addr: [u8; 64],
    port: [u8; 8],
    hex_addr: [u8; 40],
    hex_port: [u8; 8],
}

impl AddressStrings {
    /// The texts of `addr`.
    fn new(addr: &SockAddr) -> Self {
        // INVARIANT: I1: All bytes are NUL. `rpc_ntop()` terminates the address, and the other
        // texts are shorter than their arrays.
        let mut texts = Self {
            addr: [0; 64],
            port: [0; 8],
            hex_addr: [0; 40],
            hex_port: [0; 8],
        };
        texts.set_address(addr);
        texts.set_port(addr.port());
        texts
    }

    /// Writes the texts of `addr` to `this`, and sets address and texts of `xprt`.
    ///
    /// # Safety
    ///
    /// `this` may be written, and stays as long as `xprt`. No other thread accesses either yet.
    pub(super) unsafe fn publish(this: *mut Self, xprt: *mut bindings::rpc_xprt, addr: &SockAddr) {
        // SAFETY: `xprt` is the caller's alone. Its address is a `sockaddr_storage`, the size of a
        // `SockAddr`.
        unsafe {
            (*xprt).addrlen = addr.len();
            core::ptr::copy_nonoverlapping(
                addr.as_ptr().cast::<u8>(),
                (&raw mut (*xprt).addr).cast(),
                addr.len(),
            );
        }
        let netid = match addr.family() {
            Family::Inet => c"rdma",
            Family::Inet6 => c"rdma6",
        };
        // SAFETY: `this` may be written, and `xprt` is the caller's alone. The texts stay as long
        // as `xprt`; by I1 each ends with a NUL.
        unsafe {
            this.write(Self::new(addr));
            let set = |format: u32, text: *const c_char| {
                if let Some(entry) = (*xprt).address_strings.get_mut(format as usize) {
                    *entry = text;
                }
            };
            use bindings as b;
            set(
                b::rpc_display_format_t_RPC_DISPLAY_ADDR,
                (&raw const (*this).addr).cast(),
            );
            set(
                b::rpc_display_format_t_RPC_DISPLAY_PORT,
                (&raw const (*this).port).cast(),
            );
            set(
                b::rpc_display_format_t_RPC_DISPLAY_PROTO,
                c"rdma".to_bytes_with_nul().as_ptr(),
            );
            set(
                b::rpc_display_format_t_RPC_DISPLAY_HEX_ADDR,
                (&raw const (*this).hex_addr).cast(),
            );
            set(
                b::rpc_display_format_t_RPC_DISPLAY_HEX_PORT,
                (&raw const (*this).hex_port).cast(),
            );
            set(
                b::rpc_display_format_t_RPC_DISPLAY_NETID,
                netid.to_bytes_with_nul().as_ptr(),
            );
        }
    }

    /// Moves the address text of `xprt` to an allocation of its own. When an administrator writes
    /// another address to sysfs, SUNRPC frees the old text with `kfree()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`. `xprt` then has no address text.
    ///
    /// # Safety
    ///
    /// [`Self::publish`] has set the texts of `xprt`, which no other thread accesses yet.
    pub(super) unsafe fn own_address(xprt: *mut bindings::rpc_xprt) -> Result {
        // SAFETY: `xprt` is the caller's alone.
        let entry = unsafe { &mut (*xprt).address_strings[ADDR] };
        // SAFETY: By I1 the published text ends with a NUL.
        *entry = unsafe { bindings::kstrdup(*entry, bindings::GFP_KERNEL) };
        if entry.is_null() {
            Err(ENOMEM)
        } else {
            Ok(())
        }
    }

    /// Frees the address text, which [`Self::own_address`] or SUNRPC has allocated.
    ///
    /// # Safety
    ///
    /// [`Self::own_address`] was called for `xprt`, and no other thread accesses `xprt` any more.
    pub(super) unsafe fn free_address(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: By this function's contract the text comes from `kstrdup()`, or is NULL.
        unsafe { bindings::kfree((*xprt).address_strings[ADDR].cast()) };
    }

    fn set_address(&mut self, addr: &SockAddr) {
        let len = self.addr.len();
        // SAFETY: `addr` is a valid address, and the array has `len` bytes.
        unsafe { bindings::rpc_ntop(addr.as_ptr(), self.addr.as_mut_ptr().cast(), len) };
        let bytes = addr.bytes();
        let address = match addr.family() {
            Family::Inet => bytes.get(4..8),
            Family::Inet6 => bytes.get(8..24),
        };
        let digits = address
            .into_iter()
            .flatten()
            .flat_map(|byte| [byte >> 4, byte & 15]);
        for (target, digit) in self.hex_addr.iter_mut().zip(digits) {
            *target = hex(digit);
        }
    }

    /// Changes the two texts of the port.
    pub(super) fn set_port(&mut self, port: u16) {
        let divisors = [10_000, 1_000, 100, 10, 1];
        let digits = divisors.map(|d| b'0' + (port / d % 10) as u8);
        let first = divisors.iter().position(|d| port >= *d).unwrap_or(4);
        let mut text = digits.iter().skip(first);
        for target in self.port.iter_mut() {
            *target = text.next().copied().unwrap_or(0);
        }
        // The kernel's format is "%4hx": four characters, padded with blanks.
        let nibbles = [12, 8, 4, 0].map(|shift| (port >> shift) as u8 & 15);
        let first = nibbles.iter().position(|n| *n != 0).unwrap_or(3);
        for (i, (target, nibble)) in self.hex_port.iter_mut().zip(nibbles).enumerate() {
            *target = if i < first { b' ' } else { hex(nibble) };
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        0..=9 => b'0' + digit,
        _ => b'a' + (digit & 15) - 10,
    }
}
