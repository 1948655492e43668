// SPDX-License-Identifier: GPL-2.0

//! The class of client transports: what SUNRPC finds by name or netid, and makes transports with.

use core::marker::PhantomData;

use kernel::{
    error::to_result,
    prelude::*,
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
        module_ref::ModuleRef, //
    }, //
};

use super::{
    connection_ops,
    handle::put_handle,
    ops::Ops,
    rpc_xprt::Xprt,
    transport::Transport, //
};

/// How long to ask for the port of a service.
const BIND_TIMEOUT_MS: u32 = 60_000;
/// After how long without an RPC a connection is closed.
const IDLE_TIMEOUT_MS: u32 = 300_000;

/// The class; its transports refer to it, and keep the module.
static CLASS: StaticClass<Class<3>> = StaticClass::new();

/// The registration of `T` as a class of transports.
#[must_use = "it ends when it is dropped"]
pub(crate) struct ClassRegistration<T: Transport>(PhantomData<T>);

// SAFETY: Registration and its end may happen on different threads.
unsafe impl<T: Transport> Send for ClassRegistration<T> {}
// SAFETY: A shared reference offers nothing.
unsafe impl<T: Transport> Sync for ClassRegistration<T> {}

impl<T: Transport> ClassRegistration<T> {
    /// Registers; from now on SUNRPC can make transports.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is such a class already.
    pub(crate) fn new() -> Result<Self> {
        let [inet, inet6] = T::NETIDS;
        CLASS.register(|class| {
            // SAFETY: Nobody else looks at the class.
            let base = unsafe {
                Class::fill(
                    class,
                    bindings::xprt_transports_XPRT_TRANSPORT_RDMA,
                    inet,
                    [inet, inet6, c""],
                    setup::<T>,
                )
            };
            // SAFETY: Complete, and there until it is unregistered.
            to_result(unsafe { bindings::xprt_register_transport(base) })
        })?;
        Ok(Self(PhantomData))
    }
}

impl<T: Transport> Drop for ClassRegistration<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`. The module is going, to which transports hold references, so
        // that there is none left; or it could not be loaded, and there was none yet.
        unsafe { bindings::xprt_unregister_transport((*CLASS.get()).base.get()) };
    }
}

/// # Safety
///
/// Called by SUNRPC with what to make a transport for.
unsafe extern "C" fn setup<T: Transport>(
    args: *mut bindings::xprt_create,
) -> *mut bindings::rpc_xprt {
    // SAFETY: By this function's contract.
    match unsafe { create::<T>(args) } {
        Ok(raw) => raw,
        Err(error) => error.to_ptr(),
    }
}

/// # Safety
///
/// As for [`setup`].
unsafe fn create<T: Transport>(
    args: *mut bindings::xprt_create,
) -> Result<*mut bindings::rpc_xprt> {
    // SAFETY: By this function's contract.
    let (net, addr) = unsafe {
        let addr = SockAddr::from_raw((*args).dstaddr, (*args).addrlen);
        ((*args).net, addr.ok_or(EBADF)?)
    };
    let module = ModuleRef::take().ok_or(EIO)?;
    const { assert!(align_of::<Xprt<T>>() <= ALLOCATED_ALIGN) };
    // SAFETY: A valid namespace; what is returned is zeroed and larger than a `rpc_xprt`.
    let raw = unsafe { bindings::xprt_alloc(net, size_of::<Xprt<T>>(), 0, T::slots()) };
    if raw.is_null() {
        return Err(ENOMEM);
    }
    // SAFETY: Fresh, and nobody else's.
    unsafe {
        furnish::<T>(raw, &addr);
        AddressStrings::own_address(raw).inspect_err(|_| {
            AddressStrings::free_address(raw);
            bindings::xprt_free(raw);
        })?;
        // From here on the last handle frees the memory, and gives the module back: whatever
        // `T::new` was given may outlive a failure.
        module.leave();
        Xprt::<T>::init(raw.cast(), connection_ops::connect_worker::<T>)
            .inspect_err(|_| put_handle(raw))?;
    }
    Ok(raw)
}

/// Fills in what SUNRPC reads of a transport.
///
/// # Safety
///
/// `raw` is fresh from `xprt_alloc`, with room for an `Xprt<T>`.
unsafe fn furnish<T: Transport>(raw: *mut bindings::rpc_xprt, addr: &SockAddr) {
    let this = raw.cast::<Xprt<T>>();
    let each = msecs_to_jiffies(RPC_TIMEOUT_MS);
    // SAFETY: Behind the `rpc_xprt` there is room for ours, whose timeouts stay as long as that.
    unsafe {
        let timeout = Opaque::cast_into(&raw const (*this).header.timeout);
        (*timeout).to_initval = each;
        (*timeout).to_maxval = each;
        (*raw).timeout = timeout;
        (*raw).connect_timeout = each;
        (*raw).max_reconnect_timeout = each;
        (*raw).bind_timeout = msecs_to_jiffies(BIND_TIMEOUT_MS);
        (*raw).idle_timeout = msecs_to_jiffies(IDLE_TIMEOUT_MS);
        // The first attempt to connect need not wait.
        (*raw).reestablish_timeout = 0;
    }
    // SAFETY: Nobody else looks at it yet. Operations and class stay while a transport keeps the
    // module.
    unsafe {
        (*raw).ops = Ops::<T>::table();
        // Side protocols look at it; they are to use TCP.
        (*raw).prot = bindings::IPPROTO_TCP as c_int;
        (*raw).xprt_class = (*CLASS.get()).base.get();
        (*raw).max_payload = T::MAX_PAYLOAD;
    }
    // SAFETY: The texts are part of the same object.
    unsafe {
        if addr.port() != 0 {
            bindings::set_bit(bindings::XPRT_BOUND as usize, &raw mut (*raw).state);
        }
        AddressStrings::publish((&raw mut (*this).header.strings).cast(), raw, addr);
    }
}
