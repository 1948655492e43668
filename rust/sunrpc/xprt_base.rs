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
    class::{
        ALLOCATED_ALIGN,
        RPC_TIMEOUT_MS, //
    },
    module_ref::ModuleRef,
    xprt_ref::XprtRef, //
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

impl<T> NewXprt<T> {
    /// Allocates a transport with `slots` slots from the start, and `most` at most.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `net` is a valid namespace. `T` is `repr(C)`, and an `XprtBase` is its first member.
    pub(super) unsafe fn alloc(net: *mut bindings::net, slots: u32, most: u32) -> Result<Self> {
        const { assert!(align_of::<T>() <= ALLOCATED_ALIGN) };
        // SAFETY: By this function's contract `net` is valid, and `T` is larger than an `rpc_xprt`.
        let raw = unsafe { bindings::xprt_alloc(net, size_of::<T>(), slots, most) };
        // INVARIANT: I1: `xprt_alloc` zeroes the memory. I2: it is new.
        Ok(Self(NonNull::new(raw).ok_or(ENOMEM)?, PhantomData))
    }

    /// The `rpc_xprt`.
    pub(super) fn raw(&self) -> *mut bindings::rpc_xprt {
        self.0.as_ptr()
    }

    /// The whole transport.
    pub(super) fn whole(&self) -> *mut T {
        // By the contract of `alloc` the base is the first member.
        self.raw().cast()
    }

    /// The transport.
    pub(super) fn xprt(&self) -> XprtRef<'_> {
        // SAFETY: By I1 the structure is initialised, and stays as long as this value.
        unsafe { XprtRef::new(self.raw()) }
    }

    /// Sets class, operations, timeouts and address.
    ///
    /// # Safety
    ///
    /// `class` is registered, and `ops` are for transports that are a `T`. Both stay while the
    /// module is loaded.
    pub(super) unsafe fn init(
        &mut self,
        class: *mut bindings::xprt_class,
        ops: &'static bindings::rpc_xprt_ops,
        addr: &SockAddr,
    ) {
        let raw = self.raw();
        let base = raw.cast::<XprtBase>();
        let rpc_timeout = msecs_to_jiffies(RPC_TIMEOUT_MS);
        // SAFETY: By I1 there is room for an `XprtBase`, whose timeouts stay as long as `raw`. By
        // I2 nothing else accesses it. The texts are part of the same object.
        unsafe {
            let timeout = Opaque::cast_into(&raw const (*base).timeout);
            (*timeout).to_initval = rpc_timeout;
            (*timeout).to_maxval = rpc_timeout;
            (*raw).timeout = timeout;
            (*raw).ops = ops;
            (*raw).xprt_class = class;
            AddressStrings::publish((&raw mut (*base).strings).cast(), raw, addr);
        }
    }

    /// Leaves the transport and a module reference to SUNRPC. [`free`] takes both back.
    pub(super) fn into_raw(self, module: ModuleRef) -> *mut bindings::rpc_xprt {
        module.leave();
        ManuallyDrop::new(self).raw()
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
    // SAFETY: `into_raw` left the reference, and this function is called once for `raw`.
    let module = unsafe { ModuleRef::of_transport(raw) };
    // SAFETY: By this function's contract this is the last access.
    unsafe { bindings::xprt_free(raw) };
    drop(module);
}
