// SPDX-License-Identifier: GPL-2.0

//! Creates and frees an `rpc_xprt`: that of a client, or that of a server's backchannel.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr, //
};

use super::{
    addr::AddressStrings,
    c_ref::Flags,
    class::{
        Setup,
        ALLOCATED_ALIGN,
        RPC_TIMEOUT_MS, //
    },
    module_ref::ModuleRef, //
};

/// `struct rpc_xprt` with its address texts and its RPC timeouts. The first member of each
/// transport of this module.
#[repr(C)]
pub(super) struct XprtBase {
    raw: Opaque<bindings::rpc_xprt>,
    strings: UnsafeCell<AddressStrings>,
    timeout: Opaque<bindings::rpc_timeout>,
}

impl XprtBase {
    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::rpc_xprt {
        self.raw.get()
    }

    /// Sets the port that the transport connects to.
    ///
    /// # Safety
    ///
    /// `raw` is in an `XprtBase` that [`NewXprt::init`] has initialised, and its memory is there.
    /// The caller serialises calls for `raw`.
    pub(super) unsafe fn set_port(raw: *mut bindings::rpc_xprt, port: u16) {
        // SAFETY: By this function's contract there is no other writer. `sockaddr_in` and
        // `sockaddr_in6` have the port in their second 16-bit word, in network order. SUNRPC reads
        // the texts through the pointers in `raw`.
        unsafe {
            let word = (&raw mut (*raw).addr).cast::<u16>().add(1);
            word.write(port.to_be());
            (*(*raw.cast::<Self>()).strings.get()).set_port(port);
        }
    }
}

/// A new `T` that starts with an [`XprtBase`]. SUNRPC does not know it yet. Dropping it frees the
/// memory.
///
/// # Invariants
///
/// - I1: The `rpc_xprt` comes from `xprt_alloc()`, with room for a `T` that is all zeroes behind
///   it.
/// - I2: No other thread accesses the memory.
pub(super) struct NewXprt<T>(NonNull<bindings::rpc_xprt>, PhantomData<T>);

/// A transport of this module.
///
/// # Safety
///
/// `Self` is `repr(C)`, and an [`XprtBase`] is at its start.
pub(super) unsafe trait WithBase: Sized {}

/// What SUNRPC reads of a transport.
pub(super) struct Parameters {
    /// The operations.
    pub(super) ops: &'static bindings::rpc_xprt_ops,
    /// The address of the peer.
    pub(super) addr: SockAddr,
    /// The protocol.
    pub(super) prot: c_int,
    /// The largest payload of a READ or WRITE, in bytes.
    pub(super) max_payload: usize,
    /// The timeout of a connection attempt, and the longest reconnect delay, in milliseconds; 0 for
    /// a transport that never connects, as the following.
    pub(super) connect_timeout_ms: u32,
    /// The timeout of a query to rpcbind, in milliseconds.
    pub(super) bind_timeout_ms: u32,
    /// The time without an RPC after which SUNRPC closes a connection, in milliseconds.
    pub(super) idle_timeout_ms: u32,
    /// The `svc_xprt` of a backchannel transport, or NULL.
    pub(super) bc_xprt: *mut bindings::svc_xprt,
}

impl<T: WithBase> NewXprt<T> {
    /// Allocates a transport with `slots` slots from the start, and `most` at most.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn alloc(setup: &Setup<'_>, slots: u32, most: u32) -> Result<Self> {
        const { assert!(align_of::<T>() <= ALLOCATED_ALIGN) };
        // SAFETY: `setup` keeps the namespace. A `T` is larger than an `rpc_xprt` (`WithBase`).
        let raw = unsafe { bindings::xprt_alloc(setup.net(), size_of::<T>(), slots, most) };
        // INVARIANT: I1: `xprt_alloc` zeroes the memory. I2: it is new.
        Ok(Self(NonNull::new(raw).ok_or(ENOMEM)?, PhantomData))
    }

    /// The whole transport.
    pub(super) fn whole(&self) -> *mut T {
        // The base is at the start of a `T` (`WithBase`).
        self.raw().cast()
    }

    /// The flags in `state`.
    pub(super) fn flags(&self) -> Flags<'_> {
        // SAFETY: By I1 the word is there, and stays as long as this value.
        unsafe { Flags::new(&raw mut (*self.raw()).state) }
    }

    /// Sets what SUNRPC reads of the transport.
    ///
    /// # Safety
    ///
    /// The operations are for transports that are a `T`. The memory of `bc_xprt` stays as long as
    /// the transport.
    pub(super) unsafe fn init(&mut self, setup: &Setup<'_>, parameters: &Parameters) {
        let raw = self.raw();
        let base = raw.cast::<XprtBase>();
        let rpc_timeout = msecs_to_jiffies(RPC_TIMEOUT_MS);
        // SAFETY: By I1 there is room for an `XprtBase`, whose timeouts stay as long as `raw`. By
        // I2 nothing else accesses it. The texts are part of the same object. The class stays while
        // the module is loaded.
        unsafe {
            let timeout = Opaque::cast_into(&raw const (*base).timeout);
            (*timeout).to_initval = rpc_timeout;
            (*timeout).to_maxval = rpc_timeout;
            (*raw).timeout = timeout;
            (*raw).ops = parameters.ops;
            (*raw).xprt_class = setup.class();
            (*raw).prot = parameters.prot;
            (*raw).max_payload = parameters.max_payload;
            (*raw).connect_timeout = msecs_to_jiffies(parameters.connect_timeout_ms);
            (*raw).max_reconnect_timeout = msecs_to_jiffies(parameters.connect_timeout_ms);
            (*raw).bind_timeout = msecs_to_jiffies(parameters.bind_timeout_ms);
            (*raw).idle_timeout = msecs_to_jiffies(parameters.idle_timeout_ms);
            // The first attempt to connect starts at once.
            (*raw).reestablish_timeout = 0;
            (*raw).bc_xprt = parameters.bc_xprt;
            AddressStrings::publish((&raw mut (*base).strings).cast(), raw, &parameters.addr);
        }
    }

    /// Leaves the transport and a module reference to SUNRPC. [`free`] takes both back.
    pub(super) fn into_raw(self, module: ModuleRef) -> *mut bindings::rpc_xprt {
        module.leave();
        ManuallyDrop::new(self).raw()
    }
}

impl<T> NewXprt<T> {
    /// The `rpc_xprt`.
    pub(super) fn raw(&self) -> *mut bindings::rpc_xprt {
        self.0.as_ptr()
    }
}

impl<T> Drop for NewXprt<T> {
    fn drop(&mut self) {
        // SAFETY: By I1 it comes from `xprt_alloc()`, and by I2 it has no other user.
        unsafe { bindings::xprt_free(self.raw()) };
    }
}

/// Frees the memory of a transport and puts its module reference.
///
/// # Safety
///
/// `raw` comes from [`NewXprt::into_raw`]. No thread accesses it any more.
pub(super) unsafe fn free(raw: *mut bindings::rpc_xprt) {
    // SAFETY: `into_raw` left the reference, which is taken back once, before the memory that has
    // the class is freed. By this function's contract the free is the last access.
    let module = unsafe {
        let module = ModuleRef::of_transport(raw);
        bindings::xprt_free(raw);
        module
    };
    drop(module);
}
