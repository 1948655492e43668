// SPDX-License-Identifier: GPL-2.0

//! The class of backchannel transports, from which SUNRPC creates one when nfsd first calls a
//! client.
//!
//! C: svc_rdma_backchannel.c, xprt_setup_rdma_bc()

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    prelude::*,
    sync::atomic::ordering::Full, //
};

use crate::{
    bindings,
    lib::sync::Atomic,
    sunrpc::{
        class::{
            Class,
            ClassInfo,
            Setup,
            StaticClass, //
        },
        credits::Credits,
        module_ref::ModuleRef,
        xprt_base::{
            NewXprt,
            Parameters, //
        }, //
    }, //
};

use super::{
    backchannel::{
        Backchannel,
        BackchannelXprt,
        Private, //
    },
    backchannel_ops::{
        destroy,
        BackchannelOps, //
    },
    svc_xprt,
    transport::{
        Connection,
        Listener, //
    },
    xprt_ref::SvcXprtRef, //
};

/// The initial number of slots. SUNRPC allocates more when it needs them.
const INITIAL_SLOTS: u32 = 2;

/// The class. Its transports keep the module, and so the class.
static CLASS: StaticClass<Class<1>> = StaticClass::new();

/// The registration of the backchannel transports of `L`'s connections. Dropping it unregisters the
/// class.
#[must_use = "dropping it unregisters the class"]
pub(crate) struct BackchannelRegistration<L: Listener>(PhantomData<L>);

impl<L: Listener> BackchannelRegistration<L> {
    /// Registers the class, once. The registration of the listeners' class takes this registration,
    /// so all connections of this module are those of `L`.
    ///
    /// # Errors
    ///
    /// `EEXIST` if such a class is registered already.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        CLASS.register_xprt(
            module,
            ClassInfo {
                ident: bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA,
                name: c"rdma backchannel",
                netids: [c""],
                setup: setup::<L>,
            },
        )?;
        Ok(Self(PhantomData))
    }
}

impl<L: Listener> Drop for BackchannelRegistration<L> {
    fn drop(&mut self) {
        // SAFETY: `new` registered the class, and no other value unregisters it.
        unsafe { CLASS.unregister_xprt() };
    }
}

/// `setup`: creates a transport.
///
/// # Safety
///
/// SUNRPC calls this with valid arguments. `bc_xprt` is NULL, or an `svc_xprt` whose memory the
/// caller keeps by a reference to it or to another backchannel transport of it.
unsafe extern "C" fn setup<L: Listener>(
    args: *mut bindings::xprt_create,
) -> *mut bindings::rpc_xprt {
    // SAFETY: By this function's contract, for this call. `bc_xprt` is NULL, or an `svc_xprt` whose
    // memory stays for this call.
    let (setup, svc) = unsafe {
        let setup = Setup::new(args, CLASS.base());
        let svc = NonNull::new(setup.bc_xprt()).map(|svc| SvcXprtRef::new(svc.as_ptr()));
        (setup, svc)
    };
    match create::<L>(&setup, svc) {
        Ok(raw) => raw,
        Err(error) => error.to_ptr(),
    }
}

fn create<L: Listener>(
    setup: &Setup<'_>,
    svc: Option<SvcXprtRef<'_>>,
) -> Result<*mut bindings::rpc_xprt> {
    let connection = svc.and_then(svc_xprt::connection).ok_or(EINVAL)?;
    let addr = setup.addr().ok_or(EINVAL)?;
    let limits = {
        let connection = connection.get().ok_or(ENODEV)?;
        // SAFETY: The class of connections was registered with a registration of this class, of
        // which there is one, that of `L`. The reference keeps the connection in this block.
        unsafe { svc_xprt::data::<L::Connection>(connection.raw()) }.backchannel_limits()
    };
    let module = ModuleRef::take(setup).ok_or(ENODEV)?;
    let slots = limits.calls.max(1);
    let mut xprt = NewXprt::<Backchannel>::alloc(setup, slots.min(INITIAL_SLOTS), slots)?;
    // SAFETY: The credits are moved to the transport below, and `destroy` drops them before it
    // frees the memory. If `new` fails, there are none.
    let credits = Credits::new(
        unsafe { BackchannelXprt::new(xprt.raw(), connection.clone()) },
        slots,
    )?;
    let parameters = Parameters {
        ops: BackchannelOps::<L::Connection>::TABLE,
        addr,
        prot: bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA,
        max_payload: limits.bytes as usize,
        connect_timeout_ms: 0,
        bind_timeout_ms: 0,
        idle_timeout_ms: 0,
        bc_xprt: connection.raw(),
    };
    // SAFETY: Table and private part are those for connections `L::Connection`. SUNRPC does not
    // know the transport yet. The handle keeps the memory of `bc_xprt`.
    unsafe {
        xprt.init(setup, &parameters);
        Backchannel::init(
            xprt.whole(),
            Private {
                connection,
                credits,
                granted_by: Atomic::new(0),
            },
        );
    }
    xprt.flags().set::<{ bindings::XPRT_BOUND }>();
    xprt.flags().set::<{ bindings::XPRT_CONNECTED }>();
    let raw = xprt.into_raw(module);
    // SAFETY: The transport is complete. If it is not linked, SUNRPC does not know it.
    unsafe { link(raw, Private::from_raw(raw)).inspect_err(|_| destroy(raw))? };
    Ok(raw)
}

/// Stores the transport in `xpt_bc_xprt` of its connection. nfsd creates a backchannel transport
/// only if it finds none there, but two threads may do so at a time.
///
/// # Errors
///
/// `EEXIST` if there is one already.
///
/// # Safety
///
/// `private` is that of `raw`, a complete transport, which no other thread knows yet.
unsafe fn link(raw: *mut bindings::rpc_xprt, private: &Private) -> Result {
    let xprt = private.credits.xprt();
    // The reference of the `svc_xprt`, which puts it when it is freed. `get` cannot fail, since the
    // transport has the reference of its creation.
    let _ = xprt.get();
    private
        .link()
        .cmpxchg(ptr::null_mut(), raw, Full)
        .map_err(|_| EEXIST)?;
    // A thread that closes the connection sets `XPT_CLOSE` and then reads `xpt_bc_xprt`. Either it
    // sees this transport, or the test below sees the flag.
    if private.connection.is_closing() {
        xprt.disconnect_done();
    }
    Ok(())
}
