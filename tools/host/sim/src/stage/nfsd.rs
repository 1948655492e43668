// SPDX-License-Identifier: GPL-2.0

//! The program that the server runs, and its book.

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use kernel::sched::{self, below, one_in};

use super::rpc::Rpc;
use crate::bindings::svc::{Answer, Program};
use crate::bindings::{
    rpc_auth_flavors_RPC_AUTH_GSS_KRB5I as KRB5I, rpc_auth_flavors_RPC_AUTH_MAXFLAVOR as MAX,
};

/// What the server has executed.
#[derive(Default)]
pub(crate) struct Nfsd {
    executed: RefCell<BTreeMap<(u32, u32), u32>>,
    /// The same, for each connection.
    on: RefCell<BTreeSet<(usize, u32, u32)>>,
    /// The Calls of each connection.
    calls: RefCell<BTreeSet<(usize, u32)>>,
    options: Cell<NfsdOptions>,
}

/// What the server may do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NfsdOptions {
    /// One in so many Calls takes up to so many milliseconds.
    pub(crate) late: u32,
    pub(crate) late_ms: u32,
    /// One in so many Replies has no data that may be placed directly, as one that tells an error.
    pub(crate) ineligible: u32,
    /// No Call is sent twice on a connection.
    pub(crate) sent_once: bool,
}

impl Nfsd {
    /// Sets what it may do.
    pub(crate) fn set_options(&self, options: NfsdOptions) {
        self.options.set(options);
    }

    /// How often a transmission was executed.
    pub(crate) fn executed(&self, xid: u32, attempt: u32) -> u32 {
        let executed = self.executed.borrow();
        executed.get(&(xid, attempt)).copied().unwrap_or(0)
    }
}

/// A key that nothing wakes.
const LATE: usize = 11;

impl Program for Nfsd {
    fn execute(&self, connection: usize, call: &[u8]) -> Option<Answer> {
        let Some((rpc, attempt)) = Rpc::of_call(call) else {
            sched::fail(format_args!(
                "a Call of {} bytes is not as it was sent: {:02x?}",
                call.len(),
                &call[..call.len().min(80)]
            ));
        };
        say!("executes {rpc:?}");
        *self
            .executed
            .borrow_mut()
            .entry((rpc.xid, attempt))
            .or_insert(0) += 1;
        if !self.on.borrow_mut().insert((connection, rpc.xid, attempt)) {
            sched::fail(format_args!("Call {:#x} is executed twice", rpc.xid));
        }
        let options = self.options.get();
        if !self.calls.borrow_mut().insert((connection, rpc.xid)) && options.sent_once {
            sched::fail(format_args!(
                "Call {:#x} is sent twice on a connection",
                rpc.xid
            ));
        }
        if one_in(options.late) {
            let ms = 1 + below(options.late_ms as usize) as u64;
            sched::wait_until(LATE, sched::now() + ms * 1_000_000);
        }
        sched::preempt();
        let (head, data, tail) = rpc.reply_parts();
        Some(Answer {
            head,
            data,
            tail,
            eligible: rpc.is_eligible() && !one_in(options.ineligible),
            from_file: rpc.is_from_file(),
            flavor: if rpc.is_protected() { KRB5I } else { MAX - 7 },
        })
    }
}
