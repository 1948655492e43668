// SPDX-License-Identifier: GPL-2.0

//! Socket addresses and network namespaces.
//!
//! C headers: [`include/linux/socket.h`](srctree/include/linux/socket.h),
//! [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)
//!
//! The kernel crate has neither. `core::net::SocketAddr` is not laid out as a `struct sockaddr`.

use core::{
    net::{
        IpAddr,
        SocketAddr,
        SocketAddrV6, //
    },
    ptr::NonNull, //
};

use kernel::fmt;

use crate::bindings::{
    self,
    sockaddr, //
};

const AF_INET: u16 = bindings::AF_INET as u16;
const AF_INET6: u16 = bindings::AF_INET6 as u16;

/// The size of `struct sockaddr_storage` in bytes.
const MAX: usize = 128;

/// An address family. Netid `rdma` is IPv4, `rdma6` is IPv6 (RFC 8166 Section 9).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv4.
    Inet,
    /// IPv6.
    Inet6,
}

/// An IPv4 or IPv6 socket address, laid out as `struct sockaddr_storage`.
///
/// # Invariants
///
/// - I1: The family is `AF_INET` or `AF_INET6`, and all bytes behind the address of that family are
///   zero.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SockAddr {
    bytes: [u8; MAX],
}

impl SockAddr {
    /// Copies an address from C memory. Returns `None` unless it is a whole IPv4 or IPv6 address.
    ///
    /// # Safety
    ///
    /// `addr` is null, or points to `len` readable bytes.
    pub(crate) unsafe fn from_raw(addr: *const sockaddr, len: usize) -> Option<Self> {
        if addr.is_null() {
            return None;
        }
        let len = len.min(MAX);
        let mut bytes = [0; MAX];
        // SAFETY: `len` bytes are readable by this function's contract, and `bytes` has as many.
        unsafe { core::ptr::copy_nonoverlapping(addr.cast(), bytes.as_mut_ptr(), len) };
        // Every `sockaddr` starts with the family, which stays zero if `len` is less than two.
        let need = match u16::from_ne_bytes([bytes[0], bytes[1]]) {
            AF_INET => size_of::<bindings::sockaddr_in>(),
            AF_INET6 => size_of::<bindings::sockaddr_in6>(),
            _ => return None,
        };
        if len < need {
            return None;
        }
        bytes.get_mut(need..)?.fill(0);
        // INVARIANT: I1: the family was matched above, and the other bytes were just set to zero.
        Some(Self { bytes })
    }

    /// The address family.
    pub(crate) fn family(&self) -> Family {
        match u16::from_ne_bytes([self.bytes[0], self.bytes[1]]) {
            AF_INET => Family::Inet,
            _ => Family::Inet6,
        }
    }

    /// The address without the port.
    pub(crate) fn ip(&self) -> IpAddr {
        // The offsets of `sin_addr` and `sin6_addr`.
        match self.family() {
            Family::Inet => {
                let mut v4 = [0; 4];
                v4.copy_from_slice(&self.bytes[4..8]);
                v4.into()
            }
            Family::Inet6 => {
                let mut v6 = [0; 16];
                v6.copy_from_slice(&self.bytes[8..24]);
                v6.into()
            }
        }
    }

    /// The port in host order.
    pub(crate) fn port(&self) -> u16 {
        u16::from_be_bytes([self.bytes[2], self.bytes[3]])
    }

    /// The index of the interface that a link-local address belongs to, or 0.
    fn scope_id(&self) -> u32 {
        // The offset of `sin6_scope_id`. With IPv4 these bytes are zero (I1).
        let mut id = [0; 4];
        id.copy_from_slice(&self.bytes[24..28]);
        u32::from_ne_bytes(id)
    }

    /// The address and the port, as text `10.0.0.1:20049` or `[fe80::1%2]:20049`.
    pub(crate) fn socket_addr(&self) -> SocketAddr {
        match self.ip() {
            IpAddr::V6(ip) => SocketAddrV6::new(ip, self.port(), 0, self.scope_id()).into(),
            ip => SocketAddr::new(ip, self.port()),
        }
    }

    /// Sets the port, which is in host order.
    pub(crate) fn set_port(&mut self, port: u16) {
        [self.bytes[2], self.bytes[3]] = port.to_be_bytes();
    }

    /// The size of the family's `sockaddr` in bytes.
    pub(crate) fn len(&self) -> usize {
        match self.family() {
            Family::Inet => size_of::<bindings::sockaddr_in>(),
            Family::Inet6 => size_of::<bindings::sockaddr_in6>(),
        }
    }

    /// The address as a C pointer.
    pub(crate) fn as_ptr(&self) -> *const sockaddr {
        self.bytes.as_ptr().cast()
    }

    /// The whole `sockaddr_storage`.
    pub(crate) fn bytes(&self) -> &[u8; MAX] {
        &self.bytes
    }
}

impl fmt::Display for SockAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::fmt::Display::fmt(&self.socket_addr(), f)
    }
}

/// A counted reference to a network namespace.
///
/// # Invariants
///
/// - I1: The pointer is to a `struct net`, and this value owns one of its references.
pub(crate) struct Net(NonNull<bindings::net>);

// SAFETY: A `struct net` may be used and put from any thread, and I1 does not depend on the thread.
unsafe impl Send for Net {}
// SAFETY: As above.
unsafe impl Sync for Net {}

impl Net {
    /// Takes a reference to `net`. Returns `None` if `net` is null.
    ///
    /// # Safety
    ///
    /// `net` is null, or has a reference for the duration of the call.
    pub(crate) unsafe fn from_raw(net: *mut bindings::net) -> Option<Self> {
        let net = NonNull::new(net)?;
        // SAFETY: `net` has a reference by this function's contract.
        unsafe { bindings::rpcrdma_get_net(net.as_ptr()) };
        // INVARIANT: I1: the reference was just taken.
        Some(Self(net))
    }

    /// The namespace as a C pointer.
    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.0.as_ptr()
    }
}

impl Clone for Net {
    fn clone(&self) -> Self {
        // SAFETY: `self` owns a reference (I1).
        unsafe { bindings::rpcrdma_get_net(self.as_ptr()) };
        // INVARIANT: I1: the reference was just taken.
        Self(self.0)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // SAFETY: `self` owns the reference (I1), and is dropped.
        unsafe { bindings::rpcrdma_put_net(self.as_ptr()) };
    }
}
