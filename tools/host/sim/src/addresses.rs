// SPDX-License-Identifier: GPL-2.0

//! Tests of addresses as text.

use crate::bindings::{sockaddr, sockaddr_in6, AF_INET6};
use crate::lib::sockaddr::SockAddr;

/// An IPv6 address with port 20049, as text.
fn text(addr: [u16; 8], scope: u32) -> String {
    let mut bytes = [0; 16];
    for (to, from) in bytes.chunks_mut(2).zip(addr) {
        to.copy_from_slice(&from.to_be_bytes());
    }
    let raw = sockaddr_in6 {
        sin6_family: AF_INET6 as u16,
        sin6_port: 20_049_u16.to_be(),
        flow: 7,
        addr: bytes,
        scope,
    };
    let raw = (&raw const raw).cast::<sockaddr>();
    // SAFETY: That many bytes are there.
    let addr = unsafe { SockAddr::from_raw(raw, size_of::<sockaddr_in6>()) };
    let addr = addr.expect("an address");
    assert_eq!(addr.to_string(), addr.socket_addr().to_string());
    addr.to_string()
}

#[test]
fn link_local_addresses_are_told_apart() {
    let addr = [0xfe80, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(text(addr, 3), "[fe80::1%3]:20049");
    assert_eq!(text(addr, 4), "[fe80::1%4]:20049");
}

#[test]
fn other_addresses_have_no_scope() {
    assert_eq!(text([0xfd00, 2, 0, 0, 0, 0, 0, 1], 0), "[fd00:2::1]:20049");
}
