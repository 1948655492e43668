// SPDX-License-Identifier: GPL-2.0

//! The tables of operations that SUNRPC calls on a server's transports.
//!
//! SUNRPC expects one table per class. Here a listener has the class's table, and its connections
//! have another one.
//!
//! | operation                                              | runs in                             |
//! |--------------------------------------------------------|-------------------------------------|
//! | `create`                                               | a thread that configures nfsd       |
//! | `accept`, `recvfrom`, `sendto`, `result_payload`,      | an nfsd thread                      |
//! | `release_ctxt`                                         |                                     |
//! | `detach`                                               | an nfsd thread, or a thread that    |
//! |                                                        | configures nfsd                     |
//! | `free`                                                 | the thread that puts the last       |
//! |                                                        | reference: one of the above,        |
//! |                                                        | `rpciod`, or a workqueue of nfsd    |
//! | `has_wspace`                                           | any context                         |
//!
//! C: svc_rdma_transport.c, svc_rdma_has_wspace(), svc_rdma_kill_temp_xprt()
//! C: svc_rdma_recvfrom.c, svc_rdma_release_ctxt(), svc_rdma_recvfrom()
//! C: svc_rdma_sendto.c, svc_rdma_sendto(), svc_rdma_result_payload()

use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr, //
};

use kernel::{
    prelude::*,
    types::ForeignOwnable, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr, //
};

use super::{
    accepting::Accepting,
    reply::Reply,
    rqst::Arriving,
    show,
    svc_xprt::{
        self,
        NewXprt, //
    },
    transport::{
        CallMut,
        Connection,
        Listener, //
    },
    xprt_ref::SvcXprtRef, //
};

/// The tables for listeners of `L` and for their connections. They stay while the module is loaded.
pub(super) struct Ops<L: Listener>(PhantomData<L>);

impl<L: Listener> Ops<L> {
    pub(super) const LISTENER: &'static bindings::svc_xprt_ops = &bindings::svc_xprt_ops {
        xpo_create: Some(create::<L>),
        xpo_accept: Some(accept::<L>),
        xpo_has_wspace: Some(always_has_wspace),
        xpo_release_ctxt: Some(release_no_ctxt),
        xpo_detach: Some(detach_listener::<L>),
        xpo_free: Some(svc_xprt::free::<L>),
        xpo_kill_temp_xprt: Some(kill_temp_xprt),
        ..pin_init::zeroed()
    };

    pub(super) const CONNECTION: &'static bindings::svc_xprt_ops = &bindings::svc_xprt_ops {
        xpo_has_wspace: Some(has_wspace::<L::Connection>),
        xpo_recvfrom: Some(recvfrom::<L::Connection>),
        xpo_sendto: Some(sendto::<L::Connection>),
        xpo_result_payload: Some(result_payload::<L::Connection>),
        xpo_release_ctxt: Some(release_ctxt::<L::Connection>),
        xpo_detach: Some(detach::<L::Connection>),
        xpo_free: Some(free_connection::<L::Connection>),
        xpo_kill_temp_xprt: Some(kill_temp_xprt),
        ..pin_init::zeroed()
    };
}

/// `xpo_create`: creates a listener.
///
/// # Safety
///
/// SUNRPC calls this with a service and a namespace that stay as long as the transport, and an
/// address of `len` bytes.
unsafe extern "C" fn create<L: Listener>(
    serv: *mut bindings::svc_serv,
    net: *mut bindings::net,
    addr: *mut bindings::sockaddr,
    len: c_int,
    _flags: c_int,
) -> *mut bindings::svc_xprt {
    // SAFETY: By this function's contract the address has `len` bytes.
    let addr = unsafe { SockAddr::from_raw(addr, usize::try_from(len).unwrap_or(0)) };
    let Some(addr) = addr else {
        return Error::from_errno(-(bindings::EAFNOSUPPORT as c_int)).to_ptr();
    };
    // SAFETY: By this function's contract. The class is registered, since SUNRPC calls its
    // operation. The table is that of `L`.
    let xprt = unsafe { NewXprt::<L>::new(Ops::<L>::LISTENER, serv, net) };
    let created = xprt.and_then(|mut xprt| {
        xprt.set_listener();
        L::create(xprt, &addr)
    });
    match created {
        Ok(xprt) => xprt.into_raw(),
        Err(e) => e.to_ptr(),
    }
}

/// `xpo_accept`: accepts a connection.
///
/// # Safety
///
/// SUNRPC calls this with a listener of `L`, to which the caller has a reference.
unsafe extern "C" fn accept<L: Listener>(xprt: *mut bindings::svc_xprt) -> *mut bindings::svc_xprt {
    // SAFETY: By this function's contract the listener stays for this call, and keeps service and
    // namespace. The table is that of its connections.
    let (listener, accepting) = unsafe {
        (
            svc_xprt::data::<L>(xprt),
            Accepting::new(SvcXprtRef::new(xprt), Ops::<L>::CONNECTION),
        )
    };
    match listener.accept(accepting) {
        Some(connection) => {
            // SAFETY: `free_connection` removes the file first. SUNRPC has taken a reference to the
            // module for the connection, and puts it after `free_connection`.
            unsafe { show::create_file(&*connection) };
            connection.into_raw()
        }
        None => ptr::null_mut(),
    }
}

/// `xpo_detach` of a listener.
///
/// # Safety
///
/// SUNRPC calls this with a listener of `L`, to which the caller has a reference.
unsafe extern "C" fn detach_listener<L: Listener>(xprt: *mut bindings::svc_xprt) {
    // SAFETY: By this function's contract the transport stays for this call.
    unsafe { svc_xprt::data::<L>(xprt) }.detach();
}

/// `xpo_has_wspace` of a listener.
///
/// # Safety
///
/// No preconditions; the table requires the type.
unsafe extern "C" fn always_has_wspace(_xprt: *mut bindings::svc_xprt) -> c_int {
    1
}

/// `xpo_release_ctxt` of a listener, on which nothing is received.
///
/// # Safety
///
/// As for [`always_has_wspace`].
unsafe extern "C" fn release_no_ctxt(_xprt: *mut bindings::svc_xprt, _ctxt: *mut c_void) {}

/// `xpo_kill_temp_xprt`: there is no timer to shorten.
///
/// # Safety
///
/// As for [`always_has_wspace`].
unsafe extern "C" fn kill_temp_xprt(_xprt: *mut bindings::svc_xprt) {}

/// `xpo_has_wspace`: whether another Call may be received.
///
/// # Safety
///
/// SUNRPC calls this with a connection `C`. The caller has a reference to the transport, or is a
/// handler of the connection in [`XprtHandle::enqueue`](super::handle::XprtHandle::enqueue).
unsafe extern "C" fn has_wspace<C: Connection>(xprt: *mut bindings::svc_xprt) -> c_int {
    // SAFETY: By this function's contract a reference keeps the connection for this call, or the
    // caller is a handler. `xpo_free` may then run on another CPU, and waits for the handler before
    // it changes the connection, as `Connection` demands.
    unsafe { svc_xprt::data::<C>(xprt) }.has_wspace().into()
}

/// `xpo_recvfrom`: receives a Call.
///
/// # Safety
///
/// SUNRPC calls this with a request that belongs to this thread, and whose transport is a busy
/// connection `C`.
unsafe extern "C" fn recvfrom<C: Connection>(rqst: *mut bindings::svc_rqst) -> c_int {
    // SAFETY: By this function's contract the request belongs to this thread for this call, and
    // keeps the transport.
    let (connection, rqst) = unsafe { (svc_xprt::data::<C>((*rqst).rq_xprt), Arriving::new(rqst)) };
    connection.receive(rqst).into_raw()
}

/// Calls `f` with the connection and the Call of a request; `None` if the request has no Call.
///
/// # Safety
///
/// The request is that of a connection `C`, and belongs to this thread.
#[inline]
unsafe fn with_call<C: Connection, R>(
    rqst: *mut bindings::svc_rqst,
    f: impl FnOnce(&C, CallMut<'_, C>) -> R,
) -> Option<R> {
    // SAFETY: By this function's contract the request belongs to this thread, and keeps the
    // transport.
    let (connection, ctxt) =
        unsafe { (svc_xprt::data::<C>((*rqst).rq_xprt), (*rqst).rq_xprt_ctxt) };
    if ctxt.is_null() {
        return None;
    }
    // SAFETY: `Receiving::fill` stored what `into_foreign` returned. The Call stays foreign-owned
    // while the request refers to it, and is this thread's with the request.
    let call = unsafe { C::Call::borrow_mut(ctxt) };
    Some(f(connection, call))
}

/// `xpo_sendto`: sends the Reply of a request.
///
/// # Safety
///
/// SUNRPC calls this with a request that belongs to this thread and was received on a connection
/// `C`, and whose Reply is complete.
unsafe extern "C" fn sendto<C: Connection>(rqst: *mut bindings::svc_rqst) -> c_int {
    // SAFETY: By this function's contract, for this call.
    let sent = unsafe {
        let reply = Reply::new(rqst);
        with_call::<C, _>(rqst, |connection, call| connection.send(call, reply))
    };
    match sent {
        Some(Ok(())) => 0,
        Some(Err(e)) => e.to_errno(),
        None => -(bindings::ENOTCONN as c_int),
    }
}

/// `xpo_result_payload`: notes a result that may be placed directly.
///
/// # Safety
///
/// nfsd calls this while it encodes the Reply of a request that belongs to this thread and was
/// received on a connection `C`.
unsafe extern "C" fn result_payload<C: Connection>(
    rqst: *mut bindings::svc_rqst,
    offset: c_uint,
    length: c_uint,
) -> c_int {
    let note =
        |connection: &C, call: CallMut<'_, C>| connection.result_payload(call, offset, length);
    // SAFETY: By this function's contract.
    unsafe { with_call(rqst, note) };
    0
}

/// `xpo_release_ctxt`: releases the Call of a request.
///
/// # Safety
///
/// SUNRPC calls this with a connection `C`, to which the caller has a reference, and with NULL or
/// what was the `rq_xprt_ctxt` of one of its requests, which SUNRPC has cleared.
unsafe extern "C" fn release_ctxt<C: Connection>(xprt: *mut bindings::svc_xprt, ctxt: *mut c_void) {
    // SAFETY: By this function's contract `ctxt` is NULL or comes from `into_foreign`, and there is
    // no other copy of it. The transport stays for this call.
    unsafe {
        let call = C::Call::try_from_foreign(ctxt);
        svc_xprt::data::<C>(xprt).release(call);
    }
}

/// `xpo_detach` of a connection.
///
/// # Safety
///
/// SUNRPC calls this with a connection `C`, to which the caller has a reference.
unsafe extern "C" fn detach<C: Connection>(xprt: *mut bindings::svc_xprt) {
    // SAFETY: By this function's contract the transport stays for this call.
    unsafe { svc_xprt::data::<C>(xprt) }.detach();
}

/// `xpo_free` of a connection.
///
/// # Safety
///
/// SUNRPC calls this once, when the last reference to the connection `C` is gone.
unsafe extern "C" fn free_connection<C: Connection>(xprt: *mut bindings::svc_xprt) {
    // SAFETY: By this function's contract. The reference to the connection ends before the call.
    unsafe {
        // There is no private part if the accept has failed.
        let waits = svc_xprt::installed::<C>(xprt).is_some_and(|connection| {
            connection.state_file().remove();
            connection.waits_for_peer()
        });
        if waits {
            svc_xprt::free_later::<C>(xprt);
        } else {
            svc_xprt::free::<C>(xprt);
        }
    }
}
