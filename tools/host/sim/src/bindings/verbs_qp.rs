// SPDX-License-Identifier: GPL-2.0

//! Verbs: queue pairs are created, reported, drained and destroyed.

use std::collections::VecDeque;

use kernel::ffi::{c_int, c_uint};
use kernel::sched;

use super::fabric::*;
use super::*;

/// `rdma_create_qp()`, but for the `cm_id`.
pub(crate) unsafe fn create_qp(
    pd: *mut ib_pd,
    attr: &mut ib_qp_init_attr,
) -> Result<*mut ib_qp, c_int> {
    let limits = fabric(|f| f.device);
    let most = limits.attrs.max_qp_wr as c_uint;
    if attr.cap.max_send_wr > most || attr.cap.max_recv_wr > most || attr.cap.max_send_wr == 0 {
        return Err(-(EINVAL as c_int));
    }
    if attr.cap.max_send_sge > limits.attrs.max_send_sge as c_uint {
        return Err(-(EINVAL as c_int));
    }
    if sched::one_in(limits.few_queues) {
        say!("no queue pair of {} entries", attr.cap.max_send_wr);
        return Err(-(ENOMEM as c_int));
    }
    let mut pool = Vec::new();
    if limits.iwarp {
        // rdma_rw_init_qp(), which the core calls before the device, and rdma_rw_init_mrs().
        let contexts = attr.cap.max_rdma_ctxs;
        attr.cap.max_send_wr = (attr.cap.max_send_wr + 3 * contexts).min(most);
        pool = rw_mr::init_mrs(pd, contexts).map_err(|error| error.to_errno())?;
    }
    Ok(fabric(|f| {
        let number = number(f);
        let raw = Box::into_raw(Box::new(ib_qp {
            device: unsafe { (*pd).device },
            qp_num: number,
        }));
        let cqs = unsafe { ((*attr.send_cq).number, (*attr.recv_cq).number) };
        let qp = Qp {
            cap: attr.cap,
            cqs: Some(cqs),
            raw,
            event: attr.event_handler,
            context: attr.qp_context,
            regions: pool.len(),
            pool,
            ..Qp::new(unsafe { (*pd).number })
        };
        f.qps.insert(number, qp);
        raw
    }))
}

/// The SGEs of a Send.
pub(crate) fn qp_sges(number: u32) -> usize {
    fabric(|f| f.qp(number).cap.max_send_sge as usize)
}

pub(crate) unsafe fn destroy_qp(raw: *mut ib_qp) {
    let number = unsafe { (*raw).qp_num };
    let qp = fabric(|f| f.qps.remove(&number).expect("a queue pair"));
    let posted = qp.send.len() + qp.recv.len();
    if posted > 0 {
        sched::fail(format_args!(
            "QP {number} is destroyed with {posted} work requests"
        ));
    }
    if qp.pool.len() != qp.regions {
        sched::fail(format_args!(
            "QP {number} is destroyed, and {} of its {} regions are in use",
            qp.regions - qp.pool.len(),
            qp.regions
        ));
    }
    rw_mr::cleanup_mrs(qp.pool);
    drop(unsafe { Box::from_raw(raw) });
}

pub(crate) unsafe extern "C" fn ib_modify_qp(
    qp: *mut ib_qp,
    attr: *mut ib_qp_attr,
    _mask: c_int,
) -> c_int {
    kernel::lockdep::might_sleep("ib_modify_qp()");
    let (number, state) = unsafe { ((*qp).qp_num, (*attr).qp_state) };
    assert_eq!(state, ib_qp_state_IB_QPS_ERR);
    fabric(|f| f.set_error(number));
    sched::preempt();
    0
}

pub(crate) unsafe extern "C" fn ib_query_qp(
    qp: *mut ib_qp,
    attr: *mut ib_qp_attr,
    mask: c_int,
    _init_attr: *mut ib_qp_init_attr,
) -> c_int {
    kernel::lockdep::might_sleep("ib_query_qp()");
    assert_eq!(mask, ib_qp_attr_mask_IB_QP_STATE as c_int);
    let number = unsafe { (*qp).qp_num };
    let state = match fabric(|f| f.qp(number).state) {
        QpState::Init => ib_qp_state_IB_QPS_INIT,
        QpState::Rts => ib_qp_state_IB_QPS_RTS,
        QpState::Error => ib_qp_state_IB_QPS_ERR,
    };
    unsafe { (*attr).qp_state = state };
    sched::preempt();
    0
}

/// The device reports an error of a queue pair.
pub(crate) fn report(number: u32, code: c_uint) {
    let handler = fabric(|f| f.qps.get(&number).map(|qp| (qp.event, qp.context)));
    if let Some((Some(event), context)) = handler {
        sched::no_sleep("in hard IRQ context", || {
            let mut raw = ib_event { event: code };
            // SAFETY: The context stays as long as the queue pair.
            sched::module_code(|| unsafe { event(&mut raw, context) });
        });
    }
}

#[repr(C)]
struct Marker {
    cqe: ib_cqe,
    done: core::cell::Cell<bool>,
}

unsafe extern "C" fn drained(_cq: *mut ib_cq, wc: *mut ib_wc) {
    unsafe {
        let marker = (*(*wc).__bindgen_anon_1.wr_cqe.as_ref()).cast::<Marker>();
        (*marker).done.set(true);
        sched::wake(marker.addr());
    }
}

fn drain(qp: *mut ib_qp, post: impl FnOnce(&mut Qp, *mut ib_cqe)) {
    kernel::lockdep::might_sleep("a drain");
    let number = unsafe { (*qp).qp_num };
    fabric(|f| f.set_error(number));
    sched::preempt();
    let mut marker = Marker {
        cqe: ib_cqe {
            done: Some(drained),
        },
        done: core::cell::Cell::new(false),
    };
    let raw = &raw mut marker;
    let full = fabric(|f| {
        let qp = f.qp(number);
        post(qp, raw.cast());
        qp.used > qp.cap.max_send_wr as usize || qp.recv.len() > qp.cap.max_recv_wr as usize
    });
    if full {
        sched::fail("there is no room for the marker of a drain");
    }
    // SAFETY: The marker is on this stack.
    while !unsafe { (*raw).done.get() } {
        sched::wait_on(raw.addr());
    }
}

pub(crate) unsafe extern "C" fn ib_drain_sq(qp: *mut ib_qp) {
    drain(qp, |qp, cqe| {
        qp.used += 1;
        qp.send.push_back(Wqe {
            op: Op::Drain,
            sges: Vec::new(),
            sink: None,
            bytes: Vec::new(),
            signaled: true,
            cqe,
            result: None,
        });
    });
}

pub(crate) unsafe extern "C" fn ib_drain_rq(qp: *mut ib_qp) {
    drain(qp, |qp, cqe| {
        qp.recv.push_back(RecvWqe { sge: (0, 0), cqe })
    });
}
