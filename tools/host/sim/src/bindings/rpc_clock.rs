// SPDX-License-Identifier: GPL-2.0

//! The timeouts of an RPC.

use kernel::ffi::c_int;
use kernel::sched;

use super::rpc::Manner;
use super::*;

/// When the Reply of an RPC is overdue.
pub(super) struct Clock {
    manner: Manner,
    pub(super) minor: u64,
    major: u64,
}

impl Clock {
    pub(super) fn new(manner: &Manner) -> Self {
        let mut clock = Self {
            manner: *manner,
            minor: 0,
            major: 0,
        };
        if manner.timeout != 0 {
            clock.start();
        }
        clock
    }

    fn start(&mut self) {
        let timeout = u64::from(self.manner.timeout) * 1_000_000;
        self.minor = sched::now() + timeout;
        self.major = sched::now() + timeout * (u64::from(self.manner.retries) + 1);
    }

    /// `rpc_check_timeout()`, with `xprt_adjust_timeout()`: the error with which the RPC ends.
    pub(super) unsafe fn check(&mut self, task: *mut rpc_task) -> Option<c_int> {
        if self.minor == 0 || sched::now() < self.minor {
            return None;
        }
        let is_major = sched::now() >= self.major;
        if is_major {
            self.start();
        } else {
            self.minor = sched::now() + u64::from(self.manner.timeout) * 1_000_000;
        }
        unsafe {
            (*task).deadline = self.minor;
            let connected = test_bit(XPRT_CONNECTED, &raw const (*(*task).tk_xprt).state);
            let has = |flag: u32| self.manner.flags & flag != 0;
            let ends = has(RPC_TASK_SOFT) && !(has(RPC_TASK_NO_RETRANS_TIMEOUT) && connected);
            if is_major && has(RPC_TASK_SOFTCONN) && !connected {
                return Some(ETIMEDOUT as c_int);
            }
            (is_major && ends).then_some(EIO as c_int)
        }
    }
}
