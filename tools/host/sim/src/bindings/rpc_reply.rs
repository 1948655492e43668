// SPDX-License-Identifier: GPL-2.0

//! A task that sends the Reply to a backchannel Call.

use kernel::sched;

use super::rpc_tasks::*;
use super::*;

/// Sends the Reply to a backchannel Call, as `rpc_run_bc_task()`.
pub(super) unsafe fn reply(rqst: *mut rpc_rqst) {
    unsafe {
        let xprt = (*rqst).rq_xprt;
        let task = known_task(Box::new(rpc_task {
            tk_client: fixed().client.get(),
            tk_xprt: xprt,
            tk_rqstp: rqst,
            tk_flags: (RPC_TASK_SOFTCONN | RPC_TASK_NO_RETRANS_TIMEOUT) as u16,
            ..rpc_task::default()
        }));
        (*task).tk_msg.rpc_proc = fixed().reply.get();
        (*rqst).rq_task = task;
        (*rqst).rq_connect_cookie = (*xprt).connect_cookie.wrapping_sub(1);
        rqst::enqueue_transmit(task);
        // call_bc_transmit
        while !is_transmitted(task) {
            (*task).tk_status = 0;
            match -try_transmit(xprt, task) as u32 {
                0 | EBADSLT | EAGAIN => {}
                ENOMEM | ENOBUFS => delay(task),
                ENOTCONN => break,
                errno => sched::fail(format_args!("a Reply is not sent: errno {errno}")),
            }
            sleep_if_queued(task);
        }
        release(task);
        free_task(task);
    }
}
