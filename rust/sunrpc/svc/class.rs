// SPDX-License-Identifier: GPL-2.0

//! The class of server transports: what SUNRPC finds by name, and makes listeners and connections
//! with.

use core::{
    marker::PhantomData,
    ptr, //
};

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr,
    sunrpc::class::StaticClass, //
};

use super::{
    ops::Ops,
    svc_xprt::{
        self,
        NewXprt, //
    },
    transport::Listener, //
};

/// The class; its transports refer to it, and keep the module.
static CLASS: StaticClass<bindings::svc_xprt_class> = StaticClass::new();

/// Whether `xprt` is a connection of the class, and so one of the registered listener's type.
///
/// # Safety
///
/// `xprt` is null, or valid.
pub(super) unsafe fn is_connection(xprt: *mut bindings::svc_xprt) -> bool {
    // SAFETY: By this function's contract. The class of a transport is constant, and so is this
    // flag.
    !xprt.is_null()
        && unsafe {
            ptr::eq((*xprt).xpt_class, CLASS.get())
                && (&raw const (*xprt).xpt_flags).read_volatile() & (1 << bindings::XPT_LISTENER)
                    == 0
        }
}

/// The registration of the class whose listeners are `L`.
#[must_use = "it ends when it is dropped"]
pub(crate) struct Registration<L: Listener>(PhantomData<L>);

// SAFETY: Registration and its end may happen on different threads.
unsafe impl<L: Listener> Send for Registration<L> {}
// SAFETY: A shared reference offers nothing.
unsafe impl<L: Listener> Sync for Registration<L> {}

impl<L: Listener> Registration<L> {
    /// Registers the class, once.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there was such a class already.
    pub(crate) fn new(name: &'static CStr, module: &'static ThisModule) -> Result<Self> {
        CLASS.register(|class| {
            // SAFETY: Nobody else looks at the class, and all zeroes is valid for it.
            unsafe {
                class.write_bytes(0, 1);
                (*class).xcl_name = name.as_char_ptr();
                (*class).xcl_owner = module.as_ptr();
                (*class).xcl_ops = Ops::<L>::LISTENER;
                (*class).xcl_max_payload = bindings::RPCSVC_MAXPAYLOAD;
                (*class).xcl_ident = bindings::xprt_transports_XPRT_TRANSPORT_RDMA as c_int;
            }
            // SAFETY: Complete, and there until it is unregistered. SUNRPC holds the module while
            // there are transports.
            to_result(unsafe { bindings::svc_reg_xprt_class(class) })
        })?;
        Ok(Self(PhantomData))
    }
}

impl<L: Listener> Drop for Registration<L> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::svc_unreg_xprt_class(CLASS.get()) };
    }
}

/// # Safety
///
/// Called by SUNRPC with a live service and namespace, and an address of `len` bytes.
pub(super) unsafe extern "C" fn create<L: Listener>(
    serv: *mut bindings::svc_serv,
    net: *mut bindings::net,
    addr: *mut bindings::sockaddr,
    len: c_int,
    _flags: c_int,
) -> *mut bindings::svc_xprt {
    // SAFETY: By this function's contract.
    let addr = unsafe { SockAddr::from_raw(addr, usize::try_from(len).unwrap_or(0)) };
    let Some(addr) = addr else {
        return Error::from_errno(-(bindings::EAFNOSUPPORT as c_int)).to_ptr();
    };
    // SAFETY: The class is registered, since this is an operation of it. SUNRPC keeps the service
    // as long as its transports, and a transport its namespace.
    let xprt = unsafe { NewXprt::<L>::new(CLASS.get(), Ops::<L>::LISTENER, serv, net) };
    let made = xprt.and_then(|mut xprt| {
        xprt.set_listener();
        L::create(xprt, &addr)
    });
    match made {
        Ok(xprt) => xprt.into_raw(),
        Err(e) => e.to_ptr(),
    }
}

/// A listener that SUNRPC wants a connection from.
///
/// # Invariants
///
/// `xprt` is a listener `L` that stays, with its service and its namespace, for `'a`.
pub(crate) struct Accepting<'a, L: Listener> {
    xprt: *mut bindings::svc_xprt,
    _listener: PhantomData<&'a L>,
}

impl<L: Listener> Accepting<'_, L> {
    /// A transport for a connection that came in on this listener.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new_connection(&self) -> Result<NewXprt<L::Connection>> {
        let xprt = self.xprt;
        // SAFETY: By the type's invariants. SUNRPC keeps the service as long as its transports, and
        // a transport its namespace.
        unsafe {
            NewXprt::new(
                (*xprt).xpt_class,
                Ops::<L>::CONNECTION,
                (*xprt).xpt_server,
                (*xprt).xpt_net,
            )
        }
    }
}

/// # Safety
///
/// Called by SUNRPC with a busy listener.
pub(super) unsafe extern "C" fn accept<L: Listener>(
    xprt: *mut bindings::svc_xprt,
) -> *mut bindings::svc_xprt {
    // SAFETY: By this function's contract; the caller has a reference.
    let listener = unsafe { svc_xprt::data::<L>(xprt) };
    // INVARIANT: By this function's contract.
    let accepting = Accepting {
        xprt,
        _listener: PhantomData,
    };
    match listener.accept(accepting) {
        Some(connection) => connection.into_raw(),
        None => ptr::null_mut(),
    }
}
