// SPDX-License-Identifier: GPL-2.0

//! `rdma_*()`: requests to the connection manager.

use core::ffi::c_void;

use kernel::ffi::{c_char, c_int, c_uint};
use kernel::sched;

use super::cm::*;
use super::*;

pub(crate) unsafe extern "C" fn __rdma_create_kernel_id(
    _net: *mut net,
    handler: rdma_cm_event_handler,
    context: *mut c_void,
    _ps: c_uint,
    _qp_type: c_uint,
    _caller: *const c_char,
) -> *mut rdma_cm_id {
    if kernel::memory::fails(kernel::alloc::flags::GFP_KERNEL, "a cm_id") {
        return kernel::error::code::ENOMEM.to_ptr();
    }
    new_id(handler, context)
}

pub(crate) unsafe extern "C" fn rdma_destroy_id(id: *mut rdma_cm_id) {
    kernel::lockdep::might_sleep("rdma_destroy_id()");
    let number = unsafe { (*id).number };
    iwarp_law::wait_for_established(number);
    let mine = unsafe { !(*id).qp.is_null() };
    if mine {
        sched::fail("a cm_id is destroyed that has a queue pair");
    }
    cm(|cm| cm.ids.get_mut(&number).expect("a cm_id").news.clear());
    while cm(|cm| cm.ids[&number].busy) {
        sched::wait_on(busy_key(number));
        cm(|cm| cm.ids.get_mut(&number).expect("a cm_id").news.clear());
    }
    cm(|cm| {
        let old = cm.ids.remove(&number).expect("a cm_id");
        // Who asked for a connection is told that there is none.
        match old.other {
            Some(other) if !old.accepted && !old.established => {
                cm.send(End::Id(number), other, Message::Reject);
            }
            Some(other) if !old.disconnected => {
                cm.send(End::Id(number), other, Message::Disconnect);
            }
            _ => {}
        }
    });
    drop(unsafe { Box::from_raw(id) });
}

pub(crate) unsafe extern "C" fn rdma_lock_handler(id: *mut rdma_cm_id) {
    unsafe { (*id).handler_mutex.take(false) };
}

pub(crate) unsafe extern "C" fn rdma_unlock_handler(id: *mut rdma_cm_id) {
    unsafe { (*id).handler_mutex.release() };
}

pub(crate) unsafe extern "C" fn rdma_set_afonly(_id: *mut rdma_cm_id, _afonly: c_int) -> c_int {
    0
}

pub(crate) unsafe extern "C" fn rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int {
    if ib_core::is_gone(0) {
        return -(ENODEV as c_int);
    }
    unsafe { (*id).route.addr.src_addr = *addr.cast() };
    0
}

pub(crate) unsafe extern "C" fn rdma_listen(id: *mut rdma_cm_id, _backlog: c_int) -> c_int {
    cm(|cm| {
        let taken = cm.ids.values().any(|id| id.listens);
        let id = cm.ids.get_mut(unsafe { &(*id).number }).expect("a cm_id");
        if taken {
            return -(EADDRINUSE as c_int);
        }
        id.listens = true;
        0
    })
}

pub(crate) unsafe extern "C" fn rdma_resolve_addr(
    id: *mut rdma_cm_id,
    _src: *mut sockaddr,
    dst: *const sockaddr,
    _timeout_ms: usize,
) -> c_int {
    unsafe {
        if ib_core::is_gone(1) {
            let number = (*id).number;
            let event = rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR;
            let status = -(ENODEV as c_int);
            cm(|cm| cm.tell(number, event, status, Param::default()));
            return 0;
        }
        (*id).device = devices()[1];
        (*id).port_num = 1;
        (*id).route.addr.dst_addr = *dst.cast();
        (*id).route.addr.src_addr = address(2, 900);
        let number = (*id).number;
        let event = rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED;
        cm(|cm| cm.tell(number, event, 0, Param::default()));
    }
    0
}

pub(crate) unsafe extern "C" fn rdma_resolve_route(id: *mut rdma_cm_id, _ms: usize) -> c_int {
    let number = unsafe { (*id).number };
    let event = rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED;
    cm(|cm| cm.tell(number, event, 0, Param::default()));
    0
}

unsafe fn to_param(raw: *const rdma_conn_param) -> Param {
    unsafe {
        let len = (*raw).private_data_len.into();
        let data = core::slice::from_raw_parts((*raw).private_data.cast(), len);
        Param {
            private_data: data.to_vec(),
            responder_resources: (*raw).responder_resources,
            initiator_depth: (*raw).initiator_depth,
        }
    }
}

pub(crate) unsafe extern "C" fn rdma_connect(
    id: *mut rdma_cm_id,
    param: *mut rdma_conn_param,
) -> c_int {
    let (number, qp) = unsafe { ((*id).number, (*(*id).qp).qp_num) };
    unsafe { (*id).route.addr.src_addr = address_of(qp) };
    let param = unsafe { to_param(param) };
    assert!(
        param.private_data.len() <= 56,
        "the private data of a request is too long"
    );
    sched::wake(REQUEST_KEY);
    let listener = listener();
    let hostile = is_hostile(unsafe { &(*id).route.addr.dst_addr });
    cm(|cm| {
        cm.requests.push(sched::now());
        if let Some(reason) = cm.rejects {
            let event = rdma_cm_event_type_RDMA_CM_EVENT_REJECTED;
            cm.tell(number, event, reason, Param::default());
            return;
        }
        if let Some(time) = cm.unanswered {
            sched::at(sched::now() + time, move || time_out(number));
            return;
        }
        match cm
            .hostile
            .filter(|_| hostile)
            .map(End::Peer)
            .or(listener.map(End::Id))
        {
            Some(listener) => {
                let request = Message::Request { param, qp };
                cm.send(End::Id(number), listener, request);
            }
            None => {
                let event = rdma_cm_event_type_RDMA_CM_EVENT_REJECTED;
                cm.tell(number, event, 28, Param::default());
            }
        }
    });
    0
}

/// Nothing has answered a request.
fn time_out(number: usize) {
    let event = rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE;
    let status = -(ETIMEDOUT as c_int);
    cm(|cm| cm.tell(number, event, status, Param::default()));
}

pub(crate) unsafe extern "C" fn rdma_accept(
    id: *mut rdma_cm_id,
    param: *mut rdma_conn_param,
) -> c_int {
    unsafe {
        assert!(
            (*id).handler_mutex.is_held(),
            "rdma_accept() needs the handler lock"
        );
        let (number, qp) = ((*id).number, (*(*id).qp).qp_num);
        let mut param = to_param(param);
        assert!(
            param.private_data.len() <= 196,
            "the private data of an acceptance is too long"
        );
        // The other end sees its own view.
        core::mem::swap(&mut param.responder_resources, &mut param.initiator_depth);
        cm(|cm| {
            let state = cm.ids.get_mut(&number).expect("a cm_id");
            let (Some(other), Some(other_qp)) = (state.other, state.other_qp) else {
                return -(EINVAL as c_int);
            };
            state.accepted = true;
            connect(qp, other_qp);
            fabric(|f| f.qp(qp).accepted = true);
            cm.send(End::Id(number), other, Message::Accept { param, qp });
            0
        })
    }
}

pub(crate) unsafe extern "C" fn rdma_notify(id: *mut rdma_cm_id, event: c_uint) -> c_int {
    assert_eq!(event, ib_event_type_IB_EVENT_COMM_EST);
    let number = unsafe { (*id).number };
    // The CM of iWARP ignores it.
    if !fabric(|f| f.device.iwarp) {
        cm(|cm| cm.establish(number));
    }
    0
}

pub(crate) unsafe extern "C" fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
    kernel::lockdep::might_sleep("rdma_disconnect()");
    let number = unsafe { (*id).number };
    iwarp_law::wait_for_established(number);
    let qp = unsafe { (*id).qp };
    if !qp.is_null() {
        let qp = unsafe { (*qp).qp_num };
        fabric(|f| f.set_error(qp));
    }
    cm(|cm| {
        let id = cm.ids.get_mut(&number).expect("a cm_id");
        let other = id.other.filter(|_| id.accepted || id.established);
        if let (Some(other), false) = (other, id.disconnected) {
            id.disconnected = true;
            cm.send(End::Id(number), other, Message::Disconnect);
            let event = rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED;
            cm.tell(number, event, 0, Param::default());
        }
    });
    sched::preempt();
    0
}

pub(crate) unsafe extern "C" fn rdma_create_qp(
    id: *mut rdma_cm_id,
    pd: *mut ib_pd,
    attr: *mut ib_qp_init_attr,
) -> c_int {
    kernel::lockdep::might_sleep("rdma_create_qp()");
    match unsafe { create_qp(pd, &mut *attr) } {
        Ok(qp) => {
            unsafe { (*id).qp = qp };
            0
        }
        Err(errno) => errno,
    }
}

pub(crate) unsafe extern "C" fn rdma_destroy_qp(id: *mut rdma_cm_id) {
    unsafe {
        destroy_qp((*id).qp);
        (*id).qp = core::ptr::null_mut();
    }
}
