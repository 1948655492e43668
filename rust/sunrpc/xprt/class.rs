// SPDX-License-Identifier: GPL-2.0

//! The class of the client's transports, which SUNRPC finds by its name or netid.
//!
//! C: transport.c, xprt_setup_rdma()

use core::marker::PhantomData;

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr,
    sunrpc::{
        addr::AddressStrings,
        class::{
            Class,
            ClassInfo,
            StaticClass,
            IDLE_TIMEOUT_MS,
            RPC_TIMEOUT_MS, //
        },
        module_ref::ModuleRef,
        xprt_base::NewXprt, //
    }, //
};

use super::{
    connection_ops,
    handle::Header,
    ops::Ops,
    rpc_xprt::Xprt,
    transport::Transport, //
};

/// The timeout of a query to rpcbind.
const BIND_TIMEOUT_MS: u32 = 60_000;

/// The class. Its transports keep the module, and so the class.
static CLASS: StaticClass<Class<3>> = StaticClass::new();

/// The registration of `T` as a transport class. Dropping it unregisters the class.
#[must_use = "dropping it unregisters the class"]
pub(crate) struct ClassRegistration<T: Transport>(PhantomData<T>);

impl<T: Transport> ClassRegistration<T> {
    /// Registers the class. SUNRPC can create transports from now on.
    ///
    /// # Errors
    ///
    /// `EEXIST` if such a class is registered already.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        let [inet, inet6] = T::NETIDS;
        CLASS.register_xprt(
            module,
            ClassInfo {
                ident: bindings::xprt_transports_XPRT_TRANSPORT_RDMA,
                name: inet,
                netids: [inet, inet6, c""],
                setup: setup::<T>,
            },
        )?;
        Ok(Self(PhantomData))
    }
}

impl<T: Transport> Drop for ClassRegistration<T> {
    fn drop(&mut self) {
        // SAFETY: `new` registered the class. This runs in the module's exit, when no transport has
        // a reference to the module, or in its failed init, when there was no transport yet.
        unsafe { CLASS.unregister_xprt() };
    }
}

/// `setup`: creates a transport.
///
/// # Safety
///
/// SUNRPC calls this with valid arguments.
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
    // SAFETY: By this function's contract the address has `addrlen` bytes.
    let addr = unsafe { SockAddr::from_raw((*args).dstaddr, (*args).addrlen) }.ok_or(EBADF)?;
    // SAFETY: SUNRPC holds the module during this call.
    let module = unsafe { ModuleRef::take(CLASS.base()) }.ok_or(EIO)?;
    // SAFETY: By this function's contract the namespace is valid. An `Xprt` is `repr(C)` and starts
    // with a `Header`, which starts with an `XprtBase`.
    let mut xprt = unsafe { NewXprt::<Xprt<T>>::alloc((*args).net, 0, T::slots())? };
    // SAFETY: The class is registered, since SUNRPC calls its `setup`. The table is that of `T`.
    // The transport is new, and `init` sets its address texts.
    unsafe {
        xprt.init(CLASS.base(), Ops::<T>::TABLE, &addr);
        set_parameters(xprt.raw(), T::MAX_PAYLOAD);
        AddressStrings::own_address(xprt.raw())?;
    }
    if addr.port() != 0 {
        xprt.xprt().set_flag(bindings::XPRT_BOUND);
    }
    // From here on the last handle frees the transport: a failed `T::new` may leave handles.
    let raw = xprt.into_raw(module);
    // SAFETY: The transport is initialised by `NewXprt::init`, and SUNRPC does not know it yet. If
    // `init` fails, it has counted the reference in the header. Module reference and address text
    // were left to the transport above.
    unsafe {
        Xprt::<T>::init(raw.cast(), connection_ops::connect_worker::<T>)
            .inspect_err(|_| Header::put(raw))?;
    }
    Ok(raw)
}

/// Sets what SUNRPC reads of a client's transport.
///
/// # Safety
///
/// No other thread accesses `raw`.
unsafe fn set_parameters(raw: *mut bindings::rpc_xprt, max_payload: usize) {
    let rpc_timeout = msecs_to_jiffies(RPC_TIMEOUT_MS);
    // SAFETY: By this function's contract.
    unsafe {
        (*raw).connect_timeout = rpc_timeout;
        (*raw).max_reconnect_timeout = rpc_timeout;
        (*raw).bind_timeout = msecs_to_jiffies(BIND_TIMEOUT_MS);
        (*raw).idle_timeout = msecs_to_jiffies(IDLE_TIMEOUT_MS);
        // The first attempt to connect starts at once.
        (*raw).reestablish_timeout = 0;
        // Side protocols (rpcbind, NLM) look at it, and use TCP.
        (*raw).prot = bindings::IPPROTO_TCP as c_int;
        (*raw).max_payload = max_payload;
    }
}
