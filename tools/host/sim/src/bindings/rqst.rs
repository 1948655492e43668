// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client, as in `net/sunrpc/xprt.c`: requests that are to be sent, and those that
//! wait for a Reply.

use core::cell::Cell;

use kernel::ffi::c_int;
use kernel::sched;

use super::xprt::*;
use super::*;

thread_local! {
    static SIGNALS: Cell<u32> = const { Cell::new(0) };
}

/// Has a signal kill one in `n` tasks just when its Reply is taken; none if `n` is 0.
pub(crate) fn kill_answered(n: u32) {
    SIGNALS.set(n);
}

/// `xprt_request_prepare()`.
unsafe fn prepare(rqst: *mut rpc_rqst, buf: *mut xdr_buf) {
    unsafe {
        if let Some(prepare) = (*(*(*rqst).rq_xprt).ops).prepare_request {
            assert_eq!(prepare(rqst, buf), 0);
        }
    }
}

/// `xprt_request_enqueue_receive()`.
pub(crate) unsafe fn enqueue_receive(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if (*task).tk_runstate & 1 << RPC_TASK_NEED_RECV != 0 {
            return;
        }
        prepare(rqst, &raw mut (*rqst).rq_rcv_buf);
        with_queue_lock(xprt, || {
            (*rqst).rq_private_buf = (*rqst).rq_rcv_buf;
            (*rqst).rq_reply_bytes_recvd = 0;
            (*task).tk_runstate |= 1 << RPC_TASK_NEED_RECV;
            let rqst = rqst.expose_provenance();
            sunrpc(|s| {
                s.queues
                    .get_mut(&xprt.addr())
                    .expect("a transport")
                    .receive
                    .push(rqst)
            });
            set_root(xprt);
        });
    }
}

/// `rpc_decode_header()` after a bad verifier: the task waits for another Reply, without encoding
/// the Call again.
pub(crate) unsafe fn wait_again(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        (*rqst).rq_reply_bytes_recvd = 0;
        enqueue_receive(task);
        if (*rqst).rq_private_buf.head[0].iov_base != (*rqst).rq_rbuffer {
            sched::fail("a request waits for a Reply, and refers to the buffer of an earlier one");
        }
    }
}

/// `xprt_request_enqueue_transmit()`.
pub(crate) unsafe fn enqueue_transmit(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT != 0 {
            return;
        }
        prepare(rqst, &raw mut (*rqst).rq_snd_buf);
        with_queue_lock(xprt, || {
            (*task).tk_runstate |= 1 << RPC_TASK_NEED_XMIT;
            // Requests that have a credit come first.
            let has = (*rqst).rq_cong != 0;
            if has {
                test_and_change_bit(XPRT_CWND_WAIT as usize, state(xprt), false);
            }
            let rqst = rqst.expose_provenance();
            sunrpc(|s| {
                let queues = s.queues.get_mut(&xprt.addr()).expect("a transport");
                let lacks = |other: &usize| (*ptr::<rpc_rqst>(*other)).rq_cong == 0;
                let at = queues.transmit.iter().position(lacks).filter(|_| has);
                queues
                    .transmit
                    .insert(at.unwrap_or(queues.transmit.len()), rqst);
            });
        });
    }
}

/// Stores the first request that waits for a Reply, if there is one, as the root of the tree.
unsafe fn set_root(xprt: *mut rpc_xprt) {
    let first = sunrpc(|s| s.queues[&xprt.addr()].receive.first().copied());
    unsafe { (*xprt).recv_queue.rb_node = first.map_or(core::ptr::null_mut(), ptr) };
}

unsafe fn dequeue_receive(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        (*task).tk_runstate &= !(1 << RPC_TASK_NEED_RECV);
        sunrpc(|s| {
            let queues = s.queues.get_mut(&xprt.addr()).expect("a transport");
            queues.receive.retain(|other| *other != rqst.addr());
        });
        set_root(xprt);
    }
}

unsafe fn dequeue_transmit(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        (*task).tk_runstate &= !(1 << RPC_TASK_NEED_XMIT);
        sunrpc(|s| {
            let queues = s.queues.get_mut(&xprt.addr()).expect("a transport");
            queues.transmit.retain(|other| *other != rqst.addr());
        });
    }
}

/// `xprt_request_dequeue_xprt()`: no Reply is matched to the request any more.
pub(crate) unsafe fn dequeue(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        let queued = 1 << RPC_TASK_NEED_XMIT | 1 << RPC_TASK_NEED_RECV;
        sched::preempt();
        if (*task).tk_runstate & queued == 0 && (*rqst).rq_pin.counter == 0 {
            return;
        }
        loop {
            let pinned = with_queue_lock(xprt, || {
                dequeue_transmit(task);
                dequeue_receive(task);
                (*rqst).rq_pin.counter > 0
            });
            if !pinned {
                break;
            }
            while (*rqst).rq_pin.counter > 0 {
                sched::wait_on(rqst.addr());
            }
        }
    }
}

/// `xprt_transmit()`: sends what is queued, up to the request of this task.
pub(crate) unsafe fn transmit(task: *mut rpc_task) {
    unsafe {
        let xprt = (*(*task).tk_rqstp).rq_xprt;
        loop {
            let next = with_queue_lock(xprt, || {
                let next = sunrpc(|s| s.queues[&xprt.addr()].transmit.front().copied());
                next.map(|next| {
                    let rqst = ptr::<rpc_rqst>(next);
                    (*rqst).rq_pin.counter += 1;
                    rqst
                })
            });
            let Some(rqst) = next else {
                break;
            };
            let status = transmit_one(rqst);
            with_queue_lock(xprt, || xprt_unpin_rqst(rqst));
            if status < 0 {
                if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT != 0 {
                    (*task).tk_status = status;
                }
                break;
            }
        }
    }
}

/// `xprt_request_transmit()`.
unsafe fn transmit_one(rqst: *mut rpc_rqst) -> c_int {
    unsafe {
        let xprt = (*rqst).rq_xprt;
        let owner = (*rqst).rq_task;
        // A Call whose Reply has arrived is not sent again.
        let waits = (*owner).tk_runstate & 1 << RPC_TASK_NEED_RECV != 0;
        let mut status = 0;
        if test_bit(XPRT_CLOSE_WAIT, state(xprt)) {
            return -(ENOTCONN as c_int);
        } else if (*owner).killed != 0 {
            status = -(ERESTARTSYS as c_int);
        } else if waits || (*rqst).rq_reply_bytes_recvd == 0 {
            let cookie = (*xprt).connect_cookie;
            (*rqst).rq_ntrans += 1;
            status = (*(*xprt).ops).send_request.expect("an operation")(rqst);
            if status != 0 {
                (*rqst).rq_ntrans -= 1;
                return status;
            }
            (*xprt).stat.sends += 1;
            (*owner).tk_flags |= RPC_TASK_SENT as u16;
            (*rqst).rq_connect_cookie = cookie;
        }
        with_queue_lock(xprt, || dequeue_transmit(owner));
        wake_task(&raw mut (*xprt).sending, owner, Some(status));
        status
    }
}

pub(crate) unsafe extern "C" fn xprt_wait_for_reply_request_def(task: *mut rpc_task) {
    unsafe {
        let xprt = (*(*task).tk_rqstp).rq_xprt;
        sleep_on(&raw mut (*xprt).pending, task);
    }
}

pub(crate) unsafe extern "C" fn xprt_lookup_rqst(xprt: *mut rpc_xprt, xid: u32) -> *mut rpc_rqst {
    unsafe {
        if !(*xprt).queue_lock.is_held() {
            sched::fail("xprt_lookup_rqst() needs the queue lock");
        }
    }
    let found = sunrpc(|s| {
        let receive = &s.queues[&xprt.addr()].receive;
        receive
            .iter()
            .copied()
            .find(|rqst| unsafe { (*ptr::<rpc_rqst>(*rqst)).rq_xid == xid })
    });
    found.map_or(core::ptr::null_mut(), ptr)
}

pub(crate) unsafe extern "C" fn xprt_pin_rqst(rqst: *mut rpc_rqst) {
    unsafe { (*rqst).rq_pin.counter += 1 };
}

pub(crate) unsafe extern "C" fn xprt_unpin_rqst(rqst: *mut rpc_rqst) {
    unsafe { (*rqst).rq_pin.counter -= 1 };
    sched::wake(rqst.addr());
}

pub(crate) unsafe extern "C" fn xprt_complete_rqst(task: *mut rpc_task, copied: c_int) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if !(*xprt).queue_lock.is_held() {
            sched::fail("xprt_complete_rqst() needs the queue lock");
        }
        credit_law::complete(rqst);
        (*xprt).stat.recvs += 1;
        (*rqst).rq_private_buf.len = copied as u32;
        (*rqst).rq_reply_bytes_recvd = copied as usize;
        dequeue_receive(task);
        if sched::one_in(SIGNALS.get()) {
            say!("a signal while the Reply is taken");
            (*task).killed = 1;
            let status = Some(-(ERESTARTSYS as c_int));
            wake_task(&raw mut (*xprt).pending, task, status);
        }
        // SUNRPC takes the lock of the wait queue. A task that has no lock to take may be faster.
        for _ in 0..3 {
            sched::preempt();
        }
        wake_task(&raw mut (*xprt).pending, task, None);
    }
}
