// SPDX-License-Identifier: GPL-2.0

//! Plain values that both RDMA and SUNRPC speak of: socket addresses and network namespaces.

use core::{
    net::{
        IpAddr,
        SocketAddr, //
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

/// Bytes of the largest socket address (`struct sockaddr_storage`).
const MAX: usize = 128;

/// The address family of a transport; netid `rdma` is IPv4, `rdma6` is IPv6 (RFC 8166 section 9).
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
/// The family is `AF_INET` or `AF_INET6`; bytes past that family's address are zero.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SockAddr {
    bytes: [u8; MAX],
}

impl SockAddr {
    /// Copies an address out of C memory; `None` if it is neither IPv4 nor IPv6, or too short.
    ///
    /// # Safety
    ///
    /// `addr` points to `len` readable bytes.
    pub(crate) unsafe fn from_raw(addr: *const sockaddr, len: usize) -> Option<Self> {
        if addr.is_null() || len < size_of::<u16>() {
            return None;
        }
        // SAFETY: At least two bytes are readable; the family is at their start in every sockaddr.
        let family = unsafe { addr.cast::<u16>().read_unaligned() };
        let need = match family {
            AF_INET => size_of::<bindings::sockaddr_in>(),
            AF_INET6 => size_of::<bindings::sockaddr_in6>(),
            _ => return None,
        };
        if len < need {
            return None;
        }
        let mut bytes = [0; MAX];
        // SAFETY: `need` bytes are readable, and `bytes` is longer than either address.
        unsafe { core::ptr::copy_nonoverlapping(addr.cast(), bytes.as_mut_ptr(), need) };
        // INVARIANT: The family was matched above; the rest is still zero.
        Some(Self { bytes })
    }

    /// The family.
    pub(crate) fn family(&self) -> Family {
        match u16::from_ne_bytes([self.bytes[0], self.bytes[1]]) {
            AF_INET => Family::Inet,
            _ => Family::Inet6,
        }
    }

    /// The port, in host order.
    pub(crate) fn port(&self) -> u16 {
        u16::from_be_bytes([self.bytes[2], self.bytes[3]])
    }

    /// Sets the port, given in host order.
    pub(crate) fn set_port(&mut self, port: u16) {
        [self.bytes[2], self.bytes[3]] = port.to_be_bytes();
    }

    /// The length of this family's address, in bytes.
    pub(crate) fn len(&self) -> usize {
        match self.family() {
            Family::Inet => size_of::<bindings::sockaddr_in>(),
            Family::Inet6 => size_of::<bindings::sockaddr_in6>(),
        }
    }

    /// The address as C reads it.
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
        // Where `sin_addr` and `sin6_addr` are.
        let (v4, v6) = (&self.bytes[4..8], &self.bytes[8..24]);
        let ip = match self.family() {
            Family::Inet => <[u8; 4]>::try_from(v4).map(IpAddr::from),
            Family::Inet6 => <[u8; 16]>::try_from(v6).map(IpAddr::from),
        };
        let ip = ip.map_err(|_| fmt::Error)?;
        core::fmt::Display::fmt(&SocketAddr::new(ip, self.port()), f)
    }
}

/// A counted reference to a network namespace.
///
/// # Invariants
///
/// Points to a live `struct net`, whose count includes this reference.
pub(crate) struct Net(NonNull<bindings::net>);

// SAFETY: `struct net` may be used from any thread.
unsafe impl Send for Net {}
// SAFETY: As above.
unsafe impl Sync for Net {}

impl Net {
    /// A reference to `net`; `None` if that is null.
    ///
    /// # Safety
    ///
    /// `net` is null, or somebody has a reference to it during the call.
    pub(crate) unsafe fn from_raw(net: *mut bindings::net) -> Option<Self> {
        let net = NonNull::new(net)?;
        // SAFETY: By this function's contract.
        unsafe { bindings::rpcrdma_get_net(net.as_ptr()) };
        // INVARIANT: Counted just now.
        Some(Self(net))
    }

    /// The pointer that C wants.
    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.0.as_ptr()
    }
}

impl Clone for Net {
    fn clone(&self) -> Self {
        // SAFETY: Alive, by the type's invariants.
        unsafe { bindings::rpcrdma_get_net(self.as_ptr()) };
        // INVARIANT: Counted just now.
        Self(self.0)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // SAFETY: The reference is this value's.
        unsafe { bindings::rpcrdma_put_net(self.as_ptr()) };
    }
}
