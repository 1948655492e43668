// SPDX-License-Identifier: GPL-2.0

//! A play with Calls that are too long to be sent.

use core::cell::Cell;
use std::rc::Rc;

use kernel::sched::{self, below, pick, Config};

use super::faults::Faults;
use super::nfsd::Nfsd;
use super::outcome::{to_call, May, Seen};
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::rpc::{Client, Manner};

/// Pages of a region. A chunk has sixteen regions at most, so its length is below [`TOO_LONG`].
const REGION_PAGES: u32 = 20;
const TOO_LONG: u32 = 1_500_000;
/// The place of the Calls that could not be marshaled among the numbers in `mountstats`.
const FAILED_MARSHALS: usize = 18;

/// Some Calls of a client fit neither a message nor a chunk. Laws: each of these fails and is
/// counted in `mountstats`, and no other Call.
pub(super) fn client_refuses_long_calls(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let mut device = Faults::none().device;
    device.attrs.max_fast_reg_page_list_len = REGION_PAGES;
    let world = World {
        device,
        tunables: vec![("sunrpc/rdma_slot_table_entries", pick(&[4, 8]))],
        threads: pick(&[1, 2]) as usize,
        payload: 8192,
    };
    let (short, long) = (pick(&[3, 10]), pick(&[1, 2, 3]));
    let mut lengths = vec![false; short as usize];
    for _ in 0..long {
        lengths.insert(below(lengths.len() + 1), true);
    }
    world::begin(config, world, nfsd)?;
    let replies = Rc::new(Cell::new(0));
    let seen: Rc<Cell<Option<Seen>>> = Rc::default();
    let (counted, told) = (replies.clone(), seen.clone());
    sched::spawn("mount", move || {
        let client = Rc::new(Client::new(1 << 24, Manner::PATIENT).expect("a transport"));
        for is_long in lengths {
            let rpc = if is_long {
                Rpc::long(TOO_LONG)
            } else {
                Rpc::short()
            };
            client.start(to_call(rpc, May { fail: is_long }, &counted));
        }
        client.wait();
        let failed = client.mountstats()[FAILED_MARSHALS];
        if failed != client.failures.get() {
            sched::fail(format_args!(
                "{failed} Calls are counted that could not be marshaled, of {}",
                client.failures.get()
            ));
        }
        told.set(Some(Seen {
            replies: counted.get(),
            connections: client.connects(),
            refused: client.failures.get(),
            ..Seen::default()
        }));
        client.put();
    });
    sched::run_until("the Calls", || seen.get().is_some())?;
    let seen = seen.get().expect("the Calls have ended");
    if (seen.replies, seen.refused) != (short.into(), long.into()) {
        return Err(format!(
            "{} of {short} Calls have Replies, and {} of {long} have failed",
            seen.replies, seen.refused
        ));
    }
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        ..seen
    })
}
