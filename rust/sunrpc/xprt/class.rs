// SPDX-License-Identifier: GPL-2.0

//! The class of the client's transports, which SUNRPC finds by its name or netid.
//!
//! C: transport.c, xprt_setup_rdma()

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    prelude::*,
    sync::aref::AlwaysRefCounted, //
};

use crate::{
    bindings,
    sunrpc::{
        addr::AddressStrings,
        class::{
            Class,
            ClassInfo,
            Setup,
            StaticClass,
            IDLE_TIMEOUT_MS,
            RPC_TIMEOUT_MS, //
        },
        module_ref::ModuleRef,
        xprt_base::{
            NewXprt,
            Parameters, //
        }, //
    }, //
};

use super::{
    connection_ops,
    handle::Header,
    ops::Ops,
    rpc_xprt::{
        Xprt,
        XprtState, //
    },
    state_file,
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
    /// Registers the class. SUNRPC can create transports from now on, even before the module's init
    /// has ended. No step of the init that may fail comes afterwards, because a failed init frees
    /// the module whether or not transports exist.
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
        // SAFETY: `new` registered the class, and no other value unregisters it.
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
    // SAFETY: By this function's contract, for this call.
    match create::<T>(&unsafe { Setup::new(args, CLASS.base()) }) {
        Ok(raw) => raw,
        Err(error) => error.to_ptr(),
    }
}

fn create<T: Transport>(setup: &Setup<'_>) -> Result<*mut bindings::rpc_xprt> {
    let addr = setup.addr().ok_or(EBADF)?;
    let module = ModuleRef::take(setup).ok_or(EIO)?;
    let mut xprt = NewXprt::<Xprt<T>>::alloc(setup, 0, T::slots())?;
    let parameters = Parameters {
        ops: Ops::<T>::TABLE,
        addr,
        // Side protocols (rpcbind, NLM) look at it, and use TCP.
        prot: bindings::IPPROTO_TCP as c_int,
        max_payload: T::MAX_PAYLOAD,
        connect_timeout_ms: RPC_TIMEOUT_MS,
        bind_timeout_ms: BIND_TIMEOUT_MS,
        idle_timeout_ms: IDLE_TIMEOUT_MS,
        bc_xprt: ptr::null_mut(),
    };
    // SAFETY: The table is that of `T`. The transport is new, and `init` sets its address texts.
    unsafe {
        xprt.init(setup, &parameters);
        AddressStrings::own_address(xprt.raw())?;
    }
    if addr.port() != 0 {
        xprt.flags().set::<{ bindings::XPRT_BOUND }>();
    }
    // From here on the last handle frees the transport: a failed `T::new` may leave handles.
    let raw = xprt.into_raw(module);
    // SAFETY: The transport is initialised by `NewXprt::init`, and SUNRPC does not know it yet. If
    // `init` fails, it has counted the reference in the header. Module reference and address text
    // were left to the transport above. `destroy` removes the file, and puts the module reference
    // later.
    unsafe {
        Xprt::<T>::init(raw.cast(), connection_ops::connect_worker::<T>)
            .inspect_err(|_| Header::dec_ref(NonNull::new_unchecked(raw.cast())))?;
        state_file::create(XprtState::<T>::from_raw(raw));
    }
    Ok(raw)
}
