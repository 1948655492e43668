// SPDX-License-Identifier: GPL-2.0

//! The class of reverse transports: what SUNRPC makes one with when a service has something to
//! call.

use core::{
    marker::PhantomData,
    ptr, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            ordering::Full,
            Atomic, //
        },
        Arc, //
    },
    time::msecs_to_jiffies,
    types::Opaque, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr,
    sunrpc::{
        addr::AddressStrings,
        class::{
            Class,
            StaticClass,
            ALLOCATED_ALIGN,
            RPC_TIMEOUT_MS, //
        },
        credits::Credits,
        module_ref::ModuleRef, //
    }, //
};

use super::{
    backchannel::{
        forward,
        Backchannel,
        BackchannelXprt, //
    },
    backchannel_ops::{
        destroy,
        BackchannelOps, //
    },
    class::Registration,
    handle::SvcHandle,
    svc_xprt,
    transport::{
        Connection,
        Listener, //
    }, //
};

/// Slots that a reverse transport has from the start; more are made when they are needed.
const FIRST_SLOTS: u32 = 2;

/// The class; its transports refer to it, and keep the module.
static CLASS: StaticClass<Class<1>> = StaticClass::new();

/// The registration of the reverse transports of `L`'s connections.
#[must_use = "it ends when it is dropped"]
pub(crate) struct BackchannelRegistration<L: Listener>(PhantomData<L>);

// SAFETY: Registration and its end may happen on different threads.
unsafe impl<L: Listener> Send for BackchannelRegistration<L> {}
// SAFETY: A shared reference offers nothing.
unsafe impl<L: Listener> Sync for BackchannelRegistration<L> {}

impl<L: Listener> BackchannelRegistration<L> {
    /// Registers the class, once, for the connections of the one registration that there is.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there was such a class already.
    pub(crate) fn new(_of: &Registration<L>) -> Result<Self> {
        CLASS.register(|class| {
            // SAFETY: Nobody else looks at the class. No netids, which an empty one says.
            let base = unsafe {
                Class::fill(
                    class,
                    bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA,
                    c"rdma backchannel",
                    [c""],
                    setup::<L>,
                )
            };
            // SAFETY: Complete, and there until it is unregistered.
            to_result(unsafe { bindings::xprt_register_transport(base) })
        })?;
        Ok(Self(PhantomData))
    }
}

impl<L: Listener> Drop for BackchannelRegistration<L> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::xprt_unregister_transport((*CLASS.get()).base.get()) };
    }
}

/// # Safety
///
/// Called by SUNRPC with what to make a transport for.
unsafe extern "C" fn setup<L: Listener>(
    args: *mut bindings::xprt_create,
) -> *mut bindings::rpc_xprt {
    // SAFETY: By this function's contract.
    match unsafe { create::<L>(args) } {
        Ok(raw) => raw,
        Err(error) => error.to_ptr(),
    }
}

/// # Safety
///
/// As for [`setup`].
unsafe fn create<L: Listener>(args: *mut bindings::xprt_create) -> Result<*mut bindings::rpc_xprt> {
    // SAFETY: By this function's contract. The caller holds the `svc_xprt`, or another reverse
    // transport of it, and with that its memory.
    let (net, forward, addr) = unsafe {
        if !svc_xprt::is_connection((*args).bc_xprt) {
            return Err(EINVAL);
        }
        let addr = SockAddr::from_raw((*args).dstaddr, (*args).addrlen);
        let forward = SvcHandle::of((*args).bc_xprt);
        ((*args).net, forward, addr.ok_or(EINVAL)?)
    };
    let limits = {
        let forward = forward.get().ok_or(ENODEV)?;
        // SAFETY: A connection of the registered class, whose type is `L`'s; it stays for this
        // block.
        unsafe { svc_xprt::data::<L::Connection>(forward.as_ptr()) }.backchannel_limits()
    };
    let module = ModuleRef::take().ok_or(ENODEV)?;
    let slots = limits.calls.max(1);
    const { assert!(align_of::<Backchannel>() <= ALLOCATED_ALIGN) };
    // SAFETY: A valid namespace; what is returned is zeroed and larger than an `rpc_xprt`.
    let raw = unsafe {
        bindings::xprt_alloc(net, size_of::<Backchannel>(), slots.min(FIRST_SLOTS), slots)
    };
    if raw.is_null() {
        return Err(ENOMEM);
    }
    // INVARIANT: From here on only `destroy` frees the memory, or the closure, if there are no
    // credits.
    let credits = Credits::new(BackchannelXprt(raw), slots).inspect_err(|_| {
        // SAFETY: Fresh, and nobody else's.
        unsafe { bindings::xprt_free(raw) };
    })?;
    // SAFETY: Fresh, and nobody else's; `forward` is a connection of `L`.
    unsafe {
        (&raw mut (*raw.cast::<Backchannel>()).credits)
            .cast::<Arc<Credits<BackchannelXprt>>>()
            .write(credits);
        furnish::<L::Connection>(raw, &addr, limits.bytes, forward);
        // `destroy` takes it back.
        module.leave();
        link(raw).inspect_err(|_| destroy(raw))?;
    }
    Ok(raw)
}

/// Fills in what SUNRPC reads of a transport.
///
/// # Safety
///
/// `raw` is fresh from `xprt_alloc`, with room for a `Backchannel`, and `forward` a connection `C`.
unsafe fn furnish<C: Connection>(
    raw: *mut bindings::rpc_xprt,
    addr: &SockAddr,
    bytes: u32,
    forward: SvcHandle,
) {
    let this = raw.cast::<Backchannel>();
    // SAFETY: Behind the `rpc_xprt` there is room for ours, whose timeouts stay as long as that.
    unsafe {
        let timeout = Opaque::cast_into(&raw const (*this).timeout);
        (*timeout).to_initval = msecs_to_jiffies(RPC_TIMEOUT_MS);
        (*timeout).to_maxval = msecs_to_jiffies(RPC_TIMEOUT_MS);
        (*raw).timeout = timeout;
    }
    // SAFETY: Nobody else looks at it yet. Operations and class stay while a transport keeps the
    // module.
    unsafe {
        (*raw).ops = BackchannelOps::<C>::table();
        (*raw).xprt_class = (*CLASS.get()).base.get();
        (*raw).prot = bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA;
        (*raw).max_payload = bytes as usize;
    }
    // SAFETY: The texts are part of the same object.
    unsafe {
        AddressStrings::publish((&raw mut (*this).strings).cast(), raw, addr);
    }
    // SAFETY: Flags are atomic. The handle keeps the memory of the connection that is named.
    unsafe {
        for flag in [bindings::XPRT_BOUND, bindings::XPRT_CONNECTED] {
            bindings::set_bit(flag as usize, &raw mut (*raw).state);
        }
        (*raw).bc_xprt = forward.as_ptr();
        (&raw mut (*this).forward)
            .cast::<SvcHandle>()
            .write(forward);
    }
}

/// Puts the transport beside its connection, unless there is one already: a consumer asks for a new
/// one only if it finds none, but two may do so at the same time.
///
/// # Safety
///
/// `raw` is complete.
unsafe fn link(raw: *mut bindings::rpc_xprt) -> Result {
    // SAFETY: By this function's contract; the handle keeps the memory.
    unsafe {
        let forward = forward(raw);
        let place = Atomic::from_ptr(&raw mut (*forward.as_ptr()).xpt_bc_xprt);
        // The `svc_xprt`'s reference, which it puts when it is freed.
        bindings::xprt_get(raw);
        place
            .cmpxchg(ptr::null_mut(), raw, Full)
            .map_err(|_| EEXIST)?;
        // Whoever closes the connection looks for us afterwards. Either that happens, or we see it.
        if forward.is_closing() {
            bindings::xprt_disconnect_done(raw);
        }
    }
    Ok(())
}
