// SPDX-License-Identifier: GPL-2.0

//! What the classes of this module's transports have in common: one of each is registered.

use core::mem::offset_of;

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::{
            Acquire,
            Release, //
        },
        Atomic, //
    },
    types::Opaque, //
};

use crate::bindings;

/// What memory that C allocates for a transport is aligned to, at least.
pub(super) const ALLOCATED_ALIGN: usize = align_of::<u64>();

/// How long an RPC waits for its Reply before the connection is given up.
pub(super) const RPC_TIMEOUT_MS: u32 = 60_000;

/// A class that is registered once, for transports of one type; they are known by its address, for
/// as long as there are any.
///
/// # Invariants
///
/// `class` is written only by whoever has `taken` it, until it is registered. From then on it is
/// SUNRPC's.
pub(super) struct StaticClass<C> {
    taken: Atomic<bool>,
    class: Opaque<C>,
}

// SAFETY: By the type's invariants, writing is serialised.
unsafe impl<C> Sync for StaticClass<C> {}

impl<C> StaticClass<C> {
    /// Not registered.
    pub(super) const fn new() -> Self {
        Self {
            taken: Atomic::new(false),
            class: Opaque::uninit(),
        }
    }

    /// The class, as the C structures of its transports name it.
    #[inline]
    pub(super) fn get(&self) -> *mut C {
        self.class.get()
    }

    /// Has `register` fill in the class, which nobody else does meanwhile, and register it.
    ///
    /// # Errors
    ///
    /// `EEXIST` if it was registered before; or what `register` returns.
    pub(super) fn register(&self, register: impl FnOnce(*mut C) -> Result) -> Result {
        if self.taken.xchg(true, Acquire) {
            return Err(EEXIST);
        }
        register(self.get()).inspect_err(|_| self.taken.store(false, Release))
    }
}

/// `struct xprt_class` with its netids; SUNRPC reads them up to an empty one.
#[repr(C)]
pub(super) struct Class<const NETIDS: usize> {
    pub(super) base: Opaque<bindings::xprt_class>,
    pub(super) netids: [*const c_char; NETIDS],
}

const _: () = assert!(
    offset_of!(Class<1>, netids) == size_of::<bindings::xprt_class>(),
    "the flexible array of netids starts where the structure ends"
);

impl<const NETIDS: usize> Class<NETIDS> {
    /// Makes it ready to be registered; SUNRPC holds the module while it makes a transport.
    ///
    /// # Safety
    ///
    /// `this` is writable, and nobody else looks at it.
    pub(super) unsafe fn fill(
        this: *mut Self,
        ident: c_int,
        name: &'static CStr,
        netids: [&'static CStr; NETIDS],
        setup: unsafe extern "C" fn(*mut bindings::xprt_create) -> *mut bindings::rpc_xprt,
    ) -> *mut bindings::xprt_class {
        // SAFETY: By this function's contract; all zeroes is valid for it.
        unsafe {
            this.write_bytes(0, 1);
            (*this).netids = netids.map(|netid| netid.as_char_ptr());
            let base = (*this).base.get();
            (*base).ident = ident;
            (*base).setup = Some(setup);
            (*base).owner = crate::THIS_MODULE.as_ptr();
            for (place, byte) in (*base).name.iter_mut().zip(name.to_bytes_with_nul()) {
                *place = *byte;
            }
            let list = &raw mut (*base).list;
            (*list).next = list;
            (*list).prev = list;
            base
        }
    }
}
