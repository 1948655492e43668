// SPDX-License-Identifier: GPL-2.0

//! The operations that SUNRPC calls on a server's transports, made from safe traits.
//!
//! SUNRPC has one table per class. Here there are two, because what listens and what carries
//! messages have little in common: a listener has the class's table, and gives its connections
//! their own.
//!
//! | operation | runs in |
//! | --- | --- |
//! | create, detach | whoever configures the service, or a service thread |
//! | accept, receive, send, result payload, release | a service thread |
//! | free | whoever drops the last reference: any of the above, rpciod, a worker of NFS |
//! | has room | anywhere |

use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::prelude::*;

use crate::{
    bindings,
    lib::{
        foreign_buf::ForeignBuf,
        sockaddr::SockAddr, //
    }, //
};

use super::{
    accepting::Accepting,
    reply::Reply,
    rqst::Arriving,
    svc_xprt::{
        self,
        NewXprt, //
    },
    transport::{
        Connection,
        Listener, //
    }, //
};

/// The tables for a listener type and its connections.
pub(super) struct Ops<L: Listener>(PhantomData<L>);

impl<L: Listener> Ops<L> {
    pub(super) const LISTENER: &'static bindings::svc_xprt_ops = &bindings::svc_xprt_ops {
        xpo_create: Some(create::<L>),
        xpo_accept: Some(accept::<L>),
        xpo_has_wspace: Some(always),
        xpo_release_ctxt: Some(nothing_to_release),
        xpo_detach: Some(stop_listening::<L>),
        xpo_free: Some(svc_xprt::free::<L>),
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
        xpo_free: Some(svc_xprt::free::<L::Connection>),
        xpo_kill_temp_xprt: Some(kill_temp),
        ..pin_init::zeroed()
    };
}

/// # Safety
///
/// Called by SUNRPC with a live service and namespace, and an address of `len` bytes.
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
    let xprt = unsafe { NewXprt::<L>::new(Ops::<L>::LISTENER, serv, net) };
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
    let listener = unsafe { svc_xprt::data::<L>(xprt) };
    // SAFETY: By this function's contract; the table is that of the listener's connections.
    let accepting = unsafe { Accepting::new(xprt, Ops::<L>::CONNECTION) };
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
    unsafe { svc_xprt::data::<L>(xprt) }.detach();
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
    unsafe { svc_xprt::data::<C>(xprt) }.has_room().into()
}

/// # Safety
///
/// Called by SUNRPC with a request whose transport is a busy connection.
unsafe extern "C" fn recvfrom<C: Connection>(rqst: *mut bindings::svc_rqst) -> c_int {
    // SAFETY: By this function's contract; the request has a reference to the transport.
    unsafe {
        let connection = svc_xprt::data::<C>((*rqst).rq_xprt);
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
        let connection = svc_xprt::data::<C>((*rqst).rq_xprt);
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
        let connection = svc_xprt::data::<C>((*rqst).rq_xprt);
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
        svc_xprt::data::<C>(xprt).release(call);
    }
}

/// # Safety
///
/// Called by SUNRPC with a connection that it is about to drop.
unsafe extern "C" fn detach<C: Connection>(xprt: *mut bindings::svc_xprt) {
    // SAFETY: By this function's contract; the caller has a reference.
    unsafe { svc_xprt::data::<C>(xprt) }.detach();
}
