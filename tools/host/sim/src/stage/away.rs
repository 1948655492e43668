// SPDX-License-Identifier: GPL-2.0

//! A play in which a server is away for a while.

use core::cell::Cell;
use std::rc::Rc;

use kernel::ffi::c_int;
use kernel::sched::{self, below, pick, Config};

use super::faults::Faults;
use super::nfsd::Nfsd;
use super::outcome::{to_call, May, Seen};
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::cm::REQUEST_KEY;
use crate::bindings::cm_peer;
use crate::bindings::rpc::{Client, Manner};

const SECOND: u64 = 1_000_000_000;
/// `ib_cm_rej_reason`: no service has this number.
const NO_LISTENER: c_int = 8;
/// `ib_cm_rej_reason`: the peer has an old connection with the same queue pair.
const STALE: c_int = 10;
/// A key that nothing wakes.
const TIME: usize = 25;

/// Tasks of a client begin while the server is away. Laws: after an attempt that fails although the
/// server is back, the next one is made within five seconds; and the first connection stays.
pub(super) fn client_waits_for_server(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let world = World {
        device: Faults::none().device,
        tunables: Vec::new(),
        threads: pick(&[1, 2]) as usize,
        payload: 8192,
    };
    let manner = Manner {
        late: pick(&[0, 1, 2]),
        ..Manner::PATIENT
    };
    let away = u64::from(pick(&[0, 2, 60, 600])) * SECOND + below(1_000_000_000) as u64;
    let is_stale = below(2) == 0;
    let tasks: Vec<u64> = (0..pick(&[1, 2, 3]))
        .map(|_| below(3_000_000_000) as u64)
        .collect();
    world::begin(config, world, nfsd)?;
    let (count, replies) = (tasks.len() as u64, Rc::new(Cell::new(0)));
    let client: Rc<Cell<Option<Rc<Client>>>> = Rc::default();
    let (mounted, counted) = (client.clone(), replies.clone());
    let (found, is_found) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let (since, is_back) = (found.clone(), is_found.clone());
    cm_peer::reject_requests(Some(NO_LISTENER));
    sched::spawn("mount", move || {
        let client = Rc::new(Client::new(1 << 24, manner).expect("a transport"));
        mounted.set(Some(client.clone()));
        for pause in tasks {
            client.start(to_call(Rpc::short(), May { fail: false }, &counted));
            sched::wait_until(TIME, sched::now() + pause);
        }
    });
    sched::spawn("server", move || {
        sched::wait_until(TIME, sched::now() + away);
        if is_stale {
            cm_peer::reject_requests(Some(STALE));
            let tried = cm_peer::requests().len();
            while cm_peer::requests().len() == tried {
                sched::wait_on(REQUEST_KEY);
            }
            since.set(tried);
        }
        cm_peer::reject_requests(None);
        is_back.set(true);
    });
    sched::run_until("the Replies", || is_found.get() && replies.get() == count)?;
    let requests = cm_peer::requests();
    if let Some([stale, next]) = requests
        .get(found.get()..found.get() + 2)
        .filter(|_| is_stale)
    {
        let seconds = (next - stale) / SECOND;
        if seconds > 6 {
            return Err(format!("the next attempt is made after {seconds} s"));
        }
    }
    let client = client.take().expect("a client");
    let connections = client.connects();
    if connections != 1 {
        return Err(format!("a client has made {connections} connections"));
    }
    sched::spawn("umount", move || {
        client.wait();
        client.put();
    });
    let mut seen = Seen {
        replies: replies.get(),
        connections,
        refused: requests.len() as u64 - connections,
        ..Seen::default()
    };
    world::end()?;
    seen.steps = sched::steps();
    Ok(seen)
}
