// SPDX-License-Identifier: GPL-2.0

//! An address as text, as `rpc_xprt` offers it to `/proc` and to side protocols.

use kernel::prelude::*;

use crate::{
    bindings,
    lib::sockaddr::{
        Family,
        SockAddr, //
    }, //
};

/// Where SUNRPC looks for the address.
const ADDR: usize = bindings::rpc_display_format_t_RPC_DISPLAY_ADDR as usize;

/// The texts, beside the transport that they describe: they live and die with its memory.
///
/// # Invariants
///
/// Every text ends with a NUL, also while it is being changed.
pub(super) struct AddressStrings {
    addr: [u8; 64],
    port: [u8; 8],
    hex_addr: [u8; 40],
    hex_port: [u8; 8],
}

impl AddressStrings {
    /// Gives `xprt` its address, fills in all texts of it, and points `xprt` to them.
    ///
    /// # Safety
    ///
    /// `this` and `xprt` are parts of one object, which nobody else looks at yet.
    pub(super) unsafe fn publish(this: *mut Self, xprt: *mut bindings::rpc_xprt, addr: &SockAddr) {
        let mut texts = Self {
            addr: [0; 64],
            port: [0; 8],
            hex_addr: [0; 40],
            hex_port: [0; 8],
        };
        texts.set_address(addr);
        texts.set_port(addr.port());
        let netid = match addr.family() {
            Family::Inet => c"rdma",
            Family::Inet6 => c"rdma6",
        };
        // SAFETY: By this function's contract.
        unsafe {
            (*xprt).addrlen = addr.len();
            // There is room for any address.
            core::ptr::copy_nonoverlapping(
                addr.as_ptr().cast::<u8>(),
                (&raw mut (*xprt).addr).cast(),
                addr.len(),
            );
            this.write(texts);
            let put = |what: u32, text: *const c_char| {
                if let Some(entry) = (*xprt).address_strings.get_mut(what as usize) {
                    *entry = text;
                }
            };
            use bindings as b;
            put(
                b::rpc_display_format_t_RPC_DISPLAY_ADDR,
                (&raw const (*this).addr).cast(),
            );
            put(
                b::rpc_display_format_t_RPC_DISPLAY_PORT,
                (&raw const (*this).port).cast(),
            );
            put(
                b::rpc_display_format_t_RPC_DISPLAY_PROTO,
                c"rdma".as_char_ptr(),
            );
            put(
                b::rpc_display_format_t_RPC_DISPLAY_HEX_ADDR,
                (&raw const (*this).hex_addr).cast(),
            );
            put(
                b::rpc_display_format_t_RPC_DISPLAY_HEX_PORT,
                (&raw const (*this).hex_port).cast(),
            );
            put(
                b::rpc_display_format_t_RPC_DISPLAY_NETID,
                netid.as_char_ptr(),
            );
        }
    }

    /// Gives `xprt` an address text of its own: an administrator may put another in its place,
    /// through sysfs, and SUNRPC then frees the first.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; there is no address text then.
    ///
    /// # Safety
    ///
    /// The texts of `xprt` have been published, and nobody else looks at it yet.
    pub(super) unsafe fn own_address(xprt: *mut bindings::rpc_xprt) -> Result {
        // SAFETY: By this function's contract.
        let entry = unsafe { &mut (*xprt).address_strings[ADDR] };
        // SAFETY: A published text ends with a NUL.
        *entry = unsafe { bindings::kstrdup(*entry, bindings::GFP_KERNEL) };
        if entry.is_null() {
            Err(ENOMEM)
        } else {
            Ok(())
        }
    }

    /// Frees what [`Self::own_address`] or SUNRPC allocated.
    ///
    /// # Safety
    ///
    /// The last use of the texts of `xprt`, whose address text is its own.
    pub(super) unsafe fn free_address(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: By this function's contract; null is fine.
        unsafe { bindings::kfree((*xprt).address_strings[ADDR].cast()) };
    }

    fn set_address(&mut self, addr: &SockAddr) {
        let room = self.addr.len();
        // SAFETY: A valid address and a buffer of the size that is told.
        unsafe { bindings::rpc_ntop(addr.as_ptr(), self.addr.as_mut_ptr().cast(), room) };
        let bytes = addr.bytes();
        let address = match addr.family() {
            Family::Inet => bytes.get(4..8),
            Family::Inet6 => bytes.get(8..24),
        };
        let digits = address
            .into_iter()
            .flatten()
            .flat_map(|byte| [byte >> 4, byte & 15]);
        for (place, digit) in self.hex_addr.iter_mut().zip(digits) {
            *place = hex(digit);
        }
    }

    /// Changes the port's two texts.
    pub(super) fn set_port(&mut self, port: u16) {
        let divisors = [10_000, 1_000, 100, 10, 1];
        let digits = divisors.map(|d| b'0' + (port / d % 10) as u8);
        let first = divisors.iter().position(|d| port >= *d).unwrap_or(4);
        let mut text = digits.iter().skip(first);
        for place in self.port.iter_mut() {
            *place = text.next().copied().unwrap_or(0);
        }
        // Four places, blank where a leading zero would stand.
        let nibbles = [12, 8, 4, 0].map(|shift| (port >> shift) as u8 & 15);
        let first = nibbles.iter().position(|n| *n != 0).unwrap_or(3);
        for (i, (place, nibble)) in self.hex_port.iter_mut().zip(nibbles).enumerate() {
            *place = if i < first { b' ' } else { hex(nibble) };
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        0..=9 => b'0' + digit,
        _ => b'a' + (digit & 15) - 10,
    }
}
