// SPDX-License-Identifier: GPL-2.0

//! The server's transport class, and the operation tables made from safe traits.
//!
//! SUNRPC has one table per class. Here there are two, because what listens and what carries
//! messages have little in common: a listener has the class's table, and gives its connections
//! their own.
//!
//! | operation | runs in |
//! | --- | --- |
//! | create, detach | whoever configures the service, or a service thread |
//! | accept, receive, send, result payload, release | a service thread |
//! | free | whoever drops the last reference: any of the above |
//! | has room | anywhere |

use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    },
    types::Opaque, //
};

use crate::{
    bindings::{
        self,
        addr::SockAddr,
        parked::Parked, //
    },
    sunrpc::xdr::XdrBuf, //
};

use super::{
    reply::Reply,
    reverse::{
        CallError,
        ReverseLimits, //
    },
    rqst::{
        Arriving,
        Received, //
    },
    xprt::{
        self,
        NewXprt,
        SvcXprt, //
    }, //
};

/// What listens for connections.
pub(crate) trait Listener: Send + Sync + Sized + 'static {
    /// What it accepts.
    type Connection: Connection;

    /// Starts to listen on `addr`.
    fn create(xprt: NewXprt<Self>, addr: &SockAddr) -> Result<SvcXprt<Self>>;

    /// Accepts one connection, after
    /// [`SvcHandle::set_connection`](super::SvcHandle::set_connection); one call at a time.
    fn accept(&self, accepting: Accepting<'_, Self>) -> Option<SvcXprt<Self::Connection>>;

    /// Stops listening: SUNRPC is about to drop the transport.
    fn detach(&self);
}

/// What carries Calls and Replies.
pub(crate) trait Connection: Send + Sync + Sized + 'static {
    /// What a Call is kept in, from its receipt until it is released.
    type Call: Parked;

    /// Receives one Call, after [`SvcHandle::set_data`](super::SvcHandle::set_data). One call at a
    /// time, until [`Arriving::let_others_in`].
    fn receive(&self, rqst: Arriving<'_, Self>) -> Received;

    /// Notes that octets of the Reply are an item that may be placed directly.
    fn result_payload(&self, call: &mut Self::Call, offset: u32, length: u32);

    /// Sends the Reply to a Call. Many at a time.
    fn send(&self, call: &mut Self::Call, reply: Reply<'_>) -> Result;

    /// A Call is done with, if there was one. Many at a time.
    fn release(&self, call: Option<Self::Call>);

    /// What reverse Calls are limited to.
    fn reverse_limits(&self) -> ReverseLimits;

    /// Sends a reverse Call; its Reply comes to [`Connection::receive`]. `rpciod`; may sleep.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    fn call_back(&self, xid: u32, message: &XdrBuf) -> core::result::Result<(), CallError>;

    /// Whether another Call should be taken on. Anywhere; must not sleep.
    fn has_room(&self) -> bool;

    /// Disconnects: SUNRPC is about to drop the transport.
    fn detach(&self);
}

/// The class, once registered; its transports refer to it, and keep the module.
static CLASS: Atomic<*mut c_void> = Atomic::new(ptr::null_mut());

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
            ptr::eq((*xprt).xpt_class, CLASS.load(Relaxed).cast())
                && (&raw const (*xprt).xpt_flags).read_volatile() & (1 << bindings::XPT_LISTENER)
                    == 0
        }
}

/// The registration of the class whose listeners are `L`.
#[must_use = "it ends when it is dropped"]
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<L: Listener> {
    #[pin]
    class: Opaque<bindings::svc_xprt_class>,
    _listener: PhantomData<L>,
}

// SAFETY: Registration and its end may happen on different threads.
unsafe impl<L: Listener> Send for Registration<L> {}
// SAFETY: A shared reference offers nothing.
unsafe impl<L: Listener> Sync for Registration<L> {}

impl<L: Listener> Registration<L> {
    /// Registers the class.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is such a class already.
    pub(crate) fn new(
        name: &'static CStr,
        module: &'static ThisModule,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            class <- Opaque::try_ffi_init(move |slot: *mut bindings::svc_xprt_class| {
                // SAFETY: `slot` is writable, and all zeroes is valid for it.
                unsafe {
                    slot.write_bytes(0, 1);
                    (*slot).xcl_name = name.as_char_ptr();
                    (*slot).xcl_owner = module.as_ptr();
                    (*slot).xcl_ops = Ops::<L>::LISTENER;
                    (*slot).xcl_max_payload = bindings::RPCSVC_MAXPAYLOAD;
                    (*slot).xcl_ident =
                        bindings::xprt_transports_XPRT_TRANSPORT_RDMA as c_int;
                }
                // There is one at a time: its transports are known by it.
                CLASS
                    .cmpxchg(ptr::null_mut(), slot.cast(), Relaxed)
                    .map_err(|_| EEXIST)?;
                // SAFETY: `slot` is initialised, and pinned until the end of the registration.
                // SUNRPC holds the module while there are transports.
                to_result(unsafe { bindings::svc_reg_xprt_class(slot) })
                    .inspect_err(|_| CLASS.store(ptr::null_mut(), Relaxed))
            }),
            _listener: PhantomData,
        })
    }
}

#[pinned_drop]
impl<L: Listener> PinnedDrop for Registration<L> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::svc_unreg_xprt_class(self.class.get()) };
        CLASS.store(ptr::null_mut(), Relaxed);
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

/// The tables for a listener type and its connections.
pub(super) struct Ops<L: Listener>(PhantomData<L>);

impl<L: Listener> Ops<L> {
    const LISTENER: &'static bindings::svc_xprt_ops = &bindings::svc_xprt_ops {
        xpo_create: Some(create::<L>),
        xpo_accept: Some(accept::<L>),
        xpo_has_wspace: Some(always),
        xpo_release_ctxt: Some(nothing_to_release),
        xpo_detach: Some(stop_listening::<L>),
        xpo_free: Some(xprt::free::<L>),
        xpo_kill_temp_xprt: Some(kill_temp),
        ..pin_init::zeroed()
    };

    pub(super) const CONNECTION: &'static bindings::svc_xprt_ops = &bindings::svc_xprt_ops {
        xpo_has_wspace: Some(has_wspace::<L::Connection>),
        xpo_recvfrom: Some(recvfrom::<L::Connection>),
        xpo_sendto: Some(sendto::<L::Connection>),
        xpo_result_payload: Some(result_payload::<L::Connection>),
        xpo_release_ctxt: Some(release_ctxt::<L::Connection>),
        xpo_detach: Some(detach::<L::Connection>),
        xpo_free: Some(xprt::free::<L::Connection>),
        xpo_kill_temp_xprt: Some(kill_temp),
        ..pin_init::zeroed()
    };
}

/// # Safety
///
/// Called by SUNRPC with a live service and namespace, and an address of `len` octets.
unsafe extern "C" fn create<L: Listener>(
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
    let xprt =
        unsafe { NewXprt::<L>::new(CLASS.load(Relaxed).cast(), Ops::<L>::LISTENER, serv, net) };
    let made = xprt.and_then(|mut xprt| {
        xprt.set_listener();
        L::create(xprt, &addr)
    });
    match made {
        Ok(xprt) => xprt.into_raw(),
        Err(e) => e.to_ptr(),
    }
}

/// # Safety
///
/// Called by SUNRPC with a busy listener.
unsafe extern "C" fn accept<L: Listener>(xprt: *mut bindings::svc_xprt) -> *mut bindings::svc_xprt {
    // SAFETY: By this function's contract; the caller has a reference.
    let listener = unsafe { xprt::data::<L>(xprt) };
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

/// # Safety
///
/// Called by SUNRPC with a listener that it is about to drop.
unsafe extern "C" fn stop_listening<L: Listener>(xprt: *mut bindings::svc_xprt) {
    // SAFETY: By this function's contract; the caller has a reference.
    unsafe { xprt::data::<L>(xprt) }.detach();
}

/// # Safety
///
/// None is needed; SUNRPC wants the type.
unsafe extern "C" fn always(_xprt: *mut bindings::svc_xprt) -> c_int {
    1
}

/// Nothing was received on a listener.
///
/// # Safety
///
/// As for [`always`].
unsafe extern "C" fn nothing_to_release(_xprt: *mut bindings::svc_xprt, _call: *mut c_void) {}

/// Connections end in good order; there are no timers to cut short.
///
/// # Safety
///
/// As for [`always`].
unsafe extern "C" fn kill_temp(_xprt: *mut bindings::svc_xprt) {}

/// # Safety
///
/// Called by SUNRPC with a connection.
unsafe extern "C" fn has_wspace<C: Connection>(xprt: *mut bindings::svc_xprt) -> c_int {
    // SAFETY: By this function's contract; the transport is not freed during the call.
    unsafe { xprt::data::<C>(xprt) }.has_room().into()
}

/// # Safety
///
/// Called by SUNRPC with a request whose transport is a busy connection.
unsafe extern "C" fn recvfrom<C: Connection>(rqst: *mut bindings::svc_rqst) -> c_int {
    // SAFETY: By this function's contract; the request has a reference to the transport.
    unsafe {
        let connection = xprt::data::<C>((*rqst).rq_xprt);
        connection.receive(Arriving::new(rqst)).into_raw()
    }
}

/// Takes the Call out of a request, does something with it and puts it back.
///
/// # Safety
///
/// The request is that of a connection `C`, and the caller has it for itself.
#[inline]
unsafe fn with_call<C: Connection, R>(
    rqst: *mut bindings::svc_rqst,
    work: impl FnOnce(&mut C::Call) -> R,
) -> Option<R> {
    // SAFETY: By this function's contract. What is there was parked by `Receiving::fill`, if not by
    // this function, and nobody else takes it.
    unsafe {
        let raw = NonNull::new((*rqst).rq_xprt_ctxt)?;
        (*rqst).rq_xprt_ctxt = ptr::null_mut();
        let mut call = C::Call::unpark(raw);
        let result = work(&mut call);
        (*rqst).rq_xprt_ctxt = call.park().as_ptr();
        Some(result)
    }
}

/// # Safety
///
/// Called by SUNRPC with a request that was received on a connection, and whose Reply is complete.
unsafe extern "C" fn sendto<C: Connection>(rqst: *mut bindings::svc_rqst) -> c_int {
    // SAFETY: By this function's contract; the request has a reference to the transport.
    let sent = unsafe {
        let connection = xprt::data::<C>((*rqst).rq_xprt);
        with_call::<C, _>(rqst, |call| connection.send(call, Reply::new(rqst)))
    };
    match sent {
        Some(Ok(())) => 0,
        Some(Err(e)) => e.to_errno(),
        None => -(bindings::ENOTCONN as c_int),
    }
}

/// # Safety
///
/// Called by SUNRPC's consumer while it encodes the Reply of a request received on a connection.
unsafe extern "C" fn result_payload<C: Connection>(
    rqst: *mut bindings::svc_rqst,
    offset: c_uint,
    length: c_uint,
) -> c_int {
    // SAFETY: By this function's contract; the request has a reference to the transport.
    unsafe {
        let connection = xprt::data::<C>((*rqst).rq_xprt);
        with_call::<C, _>(rqst, |call| connection.result_payload(call, offset, length));
    }
    0
}

/// # Safety
///
/// Called by SUNRPC with a connection, and null or what was the context of one of its requests.
unsafe extern "C" fn release_ctxt<C: Connection>(xprt: *mut bindings::svc_xprt, call: *mut c_void) {
    // SAFETY: By this function's contract; SUNRPC forgets the context.
    unsafe {
        let call = NonNull::new(call).map(|raw| C::Call::unpark(raw));
        xprt::data::<C>(xprt).release(call);
    }
}

/// # Safety
///
/// Called by SUNRPC with a connection that it is about to drop.
unsafe extern "C" fn detach<C: Connection>(xprt: *mut bindings::svc_xprt) {
    // SAFETY: By this function's contract; the caller has a reference.
    unsafe { xprt::data::<C>(xprt) }.detach();
}
