// SPDX-License-Identifier: GPL-2.0

//! A play in which nothing answers requests to connect.

use core::cell::Cell;
use std::rc::Rc;

use kernel::sched::{self, below, pick, Config};

use super::faults::Faults;
use super::nfsd::Nfsd;
use super::outcome::{to_call, May, Seen};
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::cm_peer;
use crate::bindings::rpc::{Client, Manner};
use crate::bindings::{RPC_TASK_SOFT, RPC_TASK_SOFTCONN};

const SECOND: u64 = 1_000_000_000;
/// When siw ends a request: `MPAREQ_TIMEOUT`.
const IWARP_SECONDS: u64 = 10;
/// When the CM of InfiniBand and RoCE ends one.
const IB_SECONDS: u64 = 74;

/// `mount` calls a server. Laws: while nothing answers, each Call fails after one attempt to
/// connect; when the server answers, the next Call has a Reply.
pub(super) fn client_is_not_answered(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let mut device = Faults::none().device;
    device.iwarp = below(2) == 0;
    let seconds = if device.iwarp {
        IWARP_SECONDS
    } else {
        IB_SECONDS
    };
    let world = World {
        device,
        tunables: Vec::new(),
        threads: 1,
        payload: 8192,
    };
    let manner = Manner {
        timeout: 180_000,
        flags: RPC_TASK_SOFT | RPC_TASK_SOFTCONN,
        ..Manner::PATIENT
    };
    let failing = pick(&[1, 2, 5]) as usize;
    world::begin(config, world, nfsd)?;
    let replies = Rc::new(Cell::new(0));
    let seen: Rc<Cell<Seen>> = Rc::default();
    let (counted, told) = (replies.clone(), seen.clone());
    cm_peer::leave_unanswered(Some(seconds * SECOND));
    sched::spawn("mount", move || {
        let client = Rc::new(Client::new(1 << 24, manner).expect("a transport"));
        for call in 1..=failing {
            client.start(to_call(Rpc::short(), May { fail: true }, &counted));
            client.wait();
            let requests = cm_peer::requests().len();
            if requests != call {
                sched::fail(format_args!(
                    "{call} Calls have failed after {requests} attempts to connect"
                ));
            }
        }
        cm_peer::leave_unanswered(None);
        client.start(to_call(Rpc::short(), May { fail: false }, &counted));
        client.wait();
        told.set(Seen {
            replies: counted.get(),
            connections: client.connects(),
            refused: client.failures.get(),
            ..Seen::default()
        });
        client.put();
    });
    sched::run_until("the Reply", || replies.get() == 1)?;
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        ..seen.get()
    })
}
