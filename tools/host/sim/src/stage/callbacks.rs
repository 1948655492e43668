// SPDX-License-Identifier: GPL-2.0

//! Backchannel Calls: the program of the client's callback service, and nfsd's calls.

use core::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use kernel::sched::{self, below, one_in};

use super::outcome::{to_call, May};
use super::rpc::Rpc;
use crate::bindings::rpc::Manner;
use crate::bindings::{CallbackClient, Callbacks, RPC_TASK_SOFT, RPC_TASK_SOFTCONN};

/// How backchannel Calls go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    /// How often nfsd turns to a client, and how many Calls it makes then.
    pub(crate) rounds: u32,
    pub(crate) calls: u32,
    /// The client drops one in so many Calls, and one in so many takes long.
    pub(crate) drops: u32,
    pub(crate) late: u32,
    /// In one of so many rounds nfsd makes a Call that is longer than any message.
    pub(crate) long: u32,
    /// nfsd gives up one of so many rounds.
    pub(crate) gives_up: u32,
    /// The time that nfsd waits for a Reply, in milliseconds. If it is 0, nfsd waits until the
    /// connection ends, and makes the Call again on the next one.
    pub(crate) timeout: u32,
}

/// The program of the callback service.
pub(crate) struct CallbackProgram {
    calls: Calls,
    executed: RefCell<BTreeSet<(u32, u32)>>,
    well: Cell<bool>,
}

impl CallbackProgram {
    pub(crate) fn new(calls: Calls) -> Self {
        Self {
            calls,
            executed: RefCell::default(),
            well: Cell::new(false),
        }
    }

    /// From now on it answers each Call, at once.
    pub(crate) fn be_well(&self) {
        self.well.set(true);
    }
}

impl Callbacks for CallbackProgram {
    fn execute(&self, call: &[u8]) -> Option<Vec<u8>> {
        let Some((rpc, attempt)) = Rpc::of_call(call) else {
            sched::fail(format_args!(
                "a backchannel Call of {} bytes is not as it was sent",
                call.len()
            ));
        };
        say!("executes backchannel {rpc:?}");
        if !self.executed.borrow_mut().insert((rpc.xid, attempt)) {
            sched::fail(format_args!(
                "backchannel Call {:#x} is executed twice",
                rpc.xid
            ));
        }
        if !self.well.get() {
            if one_in(self.calls.late) {
                let ms = 1 + below(3 * self.calls.timeout.max(1000) as usize);
                sched::wait_until(LATE, sched::now() + ms as u64 * 1_000_000);
            }
            if one_in(self.calls.drops) {
                return None;
            }
        }
        sched::preempt();
        Some(rpc.reply())
    }
}

/// A key that nothing wakes.
const LATE: usize = 10;

/// What nfsd has seen.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) done: Cell<bool>,
    pub(crate) replies: Rc<Cell<u64>>,
    pub(crate) failures: Cell<u64>,
    pub(crate) killed: Cell<u64>,
    next_xid: Cell<u32>,
}

/// How often nfsd looks for a connection.
const LOOKS: usize = 50;

/// nfsd calls its clients.
pub(crate) fn call(calls: Calls, may: May) -> Rc<Outcome> {
    // The first client has the same XIDs in the other direction.
    call_from(1 << 24, calls, may)
}

/// nfsd calls its clients, which may unmount at any time. It has called them before.
pub(crate) fn call_at_umount(before: &Outcome) -> Rc<Outcome> {
    let calls = Calls {
        rounds: 3,
        calls: 4,
        drops: 0,
        late: 0,
        long: 0,
        gives_up: 0,
        timeout: 500,
    };
    call_from(before.next_xid.get(), calls, May { fail: true })
}

fn call_from(first_xid: u32, calls: Calls, may: May) -> Rc<Outcome> {
    let outcome = Rc::new(Outcome::default());
    let this = outcome.clone();
    sched::spawn("nfsd calls", move || {
        let mut xid = first_xid;
        for _ in 0..calls.rounds {
            let mut left = 1 + below(calls.calls as usize);
            for _ in 0..LOOKS {
                if let Some(again) = round(calls, may, left, &mut xid, &this) {
                    left = if calls.timeout == 0 { again } else { 0 };
                }
                if left == 0 {
                    break;
                }
            }
        }
        this.next_xid.set(xid);
        this.done.set(true);
    });
    outcome
}

/// nfsd makes so many Calls to a client. Returns how many it has to make again, or `None` if there
/// is no connection.
fn round(calls: Calls, may: May, count: usize, xid: &mut u32, outcome: &Outcome) -> Option<usize> {
    let manner = match calls.timeout {
        0 => Manner::PATIENT,
        timeout => Manner {
            timeout,
            retries: 0,
            flags: RPC_TASK_SOFT | RPC_TASK_SOFTCONN,
            late: 0,
        },
    };
    let Some(callback) = CallbackClient::any(*xid, manner) else {
        sched::wait_until(LATE, sched::now() + 5_000_000);
        return None;
    };
    let client = callback.client.clone();
    client.is_nfsd.set(true);
    for _ in 0..count {
        client.start(to_call(Rpc::short(), may, &outcome.replies));
    }
    if calls.timeout > 0 && one_in(calls.long) {
        client.start(to_call(
            Rpc::long(300_000),
            May { fail: true },
            &outcome.replies,
        ));
    }
    if one_in(calls.gives_up) {
        for _ in 0..below(calls.calls as usize) {
            sched::wait_until(LATE, sched::now() + below(300_000) as u64);
            client.kill();
        }
    }
    let given_up = client.killed.get();
    if calls.timeout == 0 {
        while client.tasks.get() > 0 && !callback.is_over() {
            sched::wait_until(LATE, sched::now() + 5_000_000);
        }
        while client.tasks.get() > 0 {
            client.kill();
            sched::wait_until(LATE, sched::now() + 1_000_000);
        }
    }
    client.wait();
    let killed = client.killed.get();
    outcome
        .failures
        .set(outcome.failures.get() + client.failures.get());
    outcome.killed.set(outcome.killed.get() + killed);
    *xid = client.next_xid();
    callback.put();
    Some((killed - given_up) as usize)
}
