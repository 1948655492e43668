// SPDX-License-Identifier: GPL-2.0

//! The program that the server runs, and its book.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use kernel::sched;

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
}

impl Nfsd {
    /// How often a transmission was executed.
    pub(crate) fn executed(&self, xid: u32, attempt: u32) -> u32 {
        let executed = self.executed.borrow();
        executed.get(&(xid, attempt)).copied().unwrap_or(0)
    }
}

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
        sched::preempt();
        let (head, data, tail) = rpc.reply_parts();
        Some(Answer {
            head,
            data,
            tail,
            eligible: rpc.is_eligible(),
            from_file: rpc.is_from_file(),
            flavor: if rpc.is_protected() { KRB5I } else { MAX - 7 },
        })
    }
}
