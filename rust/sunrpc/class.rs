// SPDX-License-Identifier: GPL-2.0

//! What the transport classes of this module have in common: each is a static, registered once.

use core::{
    ffi::CStr,
    mem::offset_of, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::atomic::ordering::{
        Acquire,
        Release, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    lib::{
        sockaddr::SockAddr,
        sync::Atomic, //
    }, //
};

use super::c_ref::{
    read_once,
    CRef, //
};

/// The minimum alignment of memory that `xprt_alloc()` returns.
pub(super) const ALLOCATED_ALIGN: usize = align_of::<u64>();

/// How long an RPC waits for its Reply before SUNRPC disconnects the transport.
pub(super) const RPC_TIMEOUT_MS: u32 = 60_000;

/// The time without an RPC after which SUNRPC closes a client's connection, unless the connection
/// has a backchannel.
pub(super) const IDLE_TIMEOUT_MS: u32 = 300_000;

/// A transport class in a static. Its address identifies the transports of the class.
///
/// # Invariants
///
/// - I1: Until the class is registered, only the thread that set `taken` accesses `class`. From
///   then on SUNRPC owns it.
pub(super) struct StaticClass<C> {
    taken: Atomic<bool>,
    class: Opaque<C>,
}

// SAFETY: By I1 one thread at a time writes the class. This type never reads it.
unsafe impl<C> Sync for StaticClass<C> {}

impl<C> StaticClass<C> {
    /// A class that is not registered.
    pub(super) const fn new() -> Self {
        Self {
            taken: Atomic::new(false),
            class: Opaque::uninit(),
        }
    }

    /// The class, as the C structures of its transports refer to it.
    #[inline]
    pub(super) fn get(&self) -> *mut C {
        self.class.get()
    }

    /// Has `fill` fill in the class, which is all zeroes, and `register` register it. No other
    /// thread accesses the class meanwhile.
    ///
    /// # Errors
    ///
    /// `EEXIST` if the class is registered already; or the error of `register`.
    pub(super) fn register(
        &self,
        fill: impl FnOnce(&mut C),
        register: impl FnOnce(*mut C) -> Result,
    ) -> Result
    where
        C: Zeroable,
    {
        if self.taken.xchg(true, Acquire) {
            return Err(EEXIST);
        }
        // SAFETY: By I1 nothing else accesses the class, since this thread has just set `taken`.
        // The first statement initialises it.
        fill(unsafe {
            self.get().write(pin_init::zeroed());
            &mut *self.get()
        });
        register(self.get()).inspect_err(|_| self.taken.store(false, Release))
    }
}

/// `struct xprt_class` with its netids, which SUNRPC reads up to an empty one.
///
/// C header: [`include/linux/sunrpc/xprt.h`](srctree/include/linux/sunrpc/xprt.h)
#[repr(C)]
pub(super) struct Class<const NETIDS: usize> {
    base: bindings::xprt_class,
    netids: [*const c_char; NETIDS],
}

// SAFETY: All zeroes is a valid value of integers, of raw pointers, of functions that may be
// absent, and of an array without entries. The structure has no other members.
unsafe impl<const NETIDS: usize> Zeroable for Class<NETIDS> {}

const _: () = assert!(
    offset_of!(Class<1>, netids) == size_of::<bindings::xprt_class>(),
    "the flexible array of netids must start where the structure ends"
);

/// The members of a `struct xprt_class`.
pub(super) struct ClassInfo<const NETIDS: usize> {
    /// `XPRT_TRANSPORT_*`.
    pub(super) ident: c_int,
    /// The name, for `/sys/kernel/sunrpc` and messages.
    pub(super) name: &'static CStr,
    /// The netids; the last one is empty.
    pub(super) netids: [&'static CStr; NETIDS],
    /// Creates a transport. SUNRPC holds the module during the call.
    pub(super) setup: unsafe extern "C" fn(*mut bindings::xprt_create) -> *mut bindings::rpc_xprt,
}

/// A call of the `setup` of a class, in which SUNRPC has a transport created.
///
/// # Invariants
///
/// - I1: The arguments are valid within `'a`, and so are the address and the namespace that they
///   point to.
/// - I2: `class` is registered, and SUNRPC holds its module within `'a`.
pub(super) struct Setup<'a> {
    args: CRef<'a, bindings::xprt_create>,
    class: *mut bindings::xprt_class,
}

impl Setup<'_> {
    /// # Safety
    ///
    /// SUNRPC calls the `setup` of `class` with `args`. The lifetime is within the call.
    pub(super) unsafe fn new(
        args: *mut bindings::xprt_create,
        class: *mut bindings::xprt_class,
    ) -> Self {
        // SAFETY: By this function's contract.
        let args = unsafe { CRef::new(args) };
        // INVARIANT: I1 and I2: by this function's contract.
        Self { args, class }
    }

    /// The class. Its module is loaded within the lifetime.
    pub(super) fn class(&self) -> *mut bindings::xprt_class {
        self.class
    }

    /// The namespace.
    pub(super) fn net(&self) -> *mut bindings::net {
        read_once!(self.args, net)
    }

    /// The address of the peer; `None` if it is neither an IPv4 nor an IPv6 address.
    pub(super) fn addr(&self) -> Option<SockAddr> {
        let (addr, len) = (
            read_once!(self.args, dstaddr),
            read_once!(self.args, addrlen),
        );
        // SAFETY: By I1 the address has `len` bytes.
        unsafe { SockAddr::from_raw(addr, len) }
    }

    /// The `svc_xprt` of a backchannel transport, or NULL.
    pub(super) fn bc_xprt(&self) -> *mut bindings::svc_xprt {
        read_once!(self.args, bc_xprt)
    }
}

impl<const NETIDS: usize> StaticClass<Class<NETIDS>> {
    /// The `struct xprt_class`.
    #[inline]
    pub(super) fn base(&self) -> *mut bindings::xprt_class {
        // `base` is the first member of a `repr(C)` structure.
        self.get().cast()
    }

    /// Fills in the class and registers it with SUNRPC.
    ///
    /// # Errors
    ///
    /// `EEXIST` if the class, or another one with its `ident`, is registered already.
    pub(super) fn register_xprt(
        &self,
        module: &'static ThisModule,
        info: ClassInfo<NETIDS>,
    ) -> Result {
        let fill = |class: &mut Class<NETIDS>| {
            class.netids = info.netids.map(|netid| netid.to_bytes_with_nul().as_ptr());
            let base = &mut class.base;
            base.ident = info.ident;
            base.setup = Some(info.setup);
            base.owner = module.as_ptr();
            for (target, byte) in base.name.iter_mut().zip(info.name.to_bytes_with_nul()) {
                *target = *byte;
            }
            // An empty list head, as `INIT_LIST_HEAD()` makes it. The class is a static.
            let list = &raw mut base.list;
            base.list.next = list;
            base.list.prev = list;
        };
        self.register(fill, |_| {
            // SAFETY: The class is complete, and name and netids are static. It is a static itself,
            // and stays until it is unregistered.
            to_result(unsafe { bindings::xprt_register_transport(self.base()) })
        })
    }

    /// Ends the registration of [`Self::register_xprt`].
    ///
    /// # Safety
    ///
    /// The class is registered.
    pub(super) unsafe fn unregister_xprt(&self) {
        // SAFETY: By this function's contract. SUNRPC takes the class out of its list and accesses
        // nothing else. The class is a static of the module, to which each transport has a
        // reference.
        unsafe { bindings::xprt_unregister_transport(self.base()) };
    }
}
