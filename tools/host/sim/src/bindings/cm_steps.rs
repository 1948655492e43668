// SPDX-License-Identifier: GPL-2.0

//! The steps of the connection manager: messages arrive, and handlers are called.

use kernel::ffi::{c_int, c_uint};
use kernel::sched;

use super::cm::*;
use super::*;

/// The steps of the connection manager.
pub(crate) struct CmSteps;

enum Step {
    Arrive(usize),
    News(usize),
}

fn steps() -> Vec<Step> {
    cm(|cm| {
        let wires = cm
            .wires
            .iter()
            .enumerate()
            .filter(|(_, wire)| !wire.2.is_empty());
        let mut steps: Vec<Step> = wires.map(|(nth, _)| Step::Arrive(nth)).collect();
        let ids = cm
            .ids
            .iter()
            .filter(|(_, id)| !id.news.is_empty() && !id.busy);
        steps.extend(ids.map(|(number, _)| Step::News(*number)));
        steps
    })
}

impl sched::Source for CmSteps {
    fn pending(&self) -> usize {
        steps().len()
    }

    fn run(&self, nth: usize) {
        match steps().swap_remove(nth) {
            Step::Arrive(wire) => cm(|cm| {
                let (from, to, wire) = &mut cm.wires[wire];
                let (from, to) = (*from, *to);
                let message = wire.pop_front().expect("a message");
                cm.arrive(from, to, message);
            }),
            Step::News(number) => {
                let news = cm(|cm| {
                    let id = cm.ids.get_mut(&number).expect("a cm_id");
                    id.busy = true;
                    id.news.pop_front().expect("news")
                });
                sched::spawn(format!("cm_id {number}"), move || handle(number, news));
            }
        }
    }
}

fn handle(number: usize, news: News) {
    let raw = cm(|cm| cm.raw(number));
    // SAFETY: A `cm_id` is destroyed when its handler is not busy.
    unsafe {
        (*raw).handler_mutex.take(false);
        match news {
            News::Event {
                event,
                status,
                param,
            } => call(raw, event, status, &param),
            News::Request { from, param, qp } => request(raw, from, &param, qp),
        }
        (*raw).handler_mutex.release();
    }
    cm(|cm| {
        if let Some(id) = cm.ids.get_mut(&number) {
            id.busy = false;
        }
    });
    sched::wake(busy_key(number));
}

/// # Safety
///
/// The `cm_id` is there.
unsafe fn call(raw: *mut rdma_cm_id, event: c_uint, status: c_int, param: &Param) {
    let mut event = rdma_cm_event {
        event,
        status,
        ..Default::default()
    };
    // SAFETY: A plain member; the handler gets a `cm_id` with its context.
    unsafe {
        *event.param.conn.as_mut() = raw_param(param);
        let handler = (*raw).event_handler.expect("a handler");
        let ret = sched::module_code(|| handler(raw, &mut event));
        assert_eq!(ret, 0);
    }
}

fn raw_param(param: &Param) -> rdma_conn_param {
    rdma_conn_param {
        private_data: param.private_data.as_ptr().cast(),
        private_data_len: param.private_data.len() as u8,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        ..Default::default()
    }
}

/// A listener is told of a connection request, by a new `cm_id`.
///
/// # Safety
///
/// The listener is there.
unsafe fn request(listener: *mut rdma_cm_id, from: End, param: &Param, qp: u32) {
    if hotplug::has_cm_left() {
        // SAFETY: By this function's contract.
        let listener = unsafe { (*listener).number };
        cm(|cm| cm.send(End::Id(listener), from, Message::Reject));
        return;
    }
    // SAFETY: By this function's contract.
    let new = unsafe { new_id((*listener).event_handler, (*listener).context) };
    // SAFETY: Just created.
    let number = unsafe { (*new).number };
    cm(|cm| {
        let id = cm.ids.get_mut(&number).expect("a cm_id");
        id.other = Some(from);
        id.other_qp = Some(qp);
    });
    let mut event = rdma_cm_event {
        event: rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST,
        ..Default::default()
    };
    // SAFETY: The new `cm_id` is this function's until the handler takes it.
    unsafe {
        (*new).device = device();
        (*new).port_num = 1;
        (*new).route.addr.src_addr = server_address();
        (*new).route.addr.dst_addr = address_of(qp);
        // The CM reports both values from this end's view.
        let mut seen = raw_param(param);
        seen.responder_resources = param.initiator_depth;
        seen.initiator_depth = param.responder_resources;
        *event.param.conn.as_mut() = seen;
        (*new).handler_mutex.take(false);
        let handler = (*new).event_handler.expect("a handler");
        let ret = sched::module_code(|| handler(new, &mut event));
        (*new).handler_mutex.release();
        if ret != 0 {
            // InfiniBand sends no answer, and the peer tries again. Here it is rejected.
            rdma_destroy_id(new);
        }
    }
}
