// SPDX-License-Identifier: GPL-2.0

//! Plays with hostile peers, beside those that keep to the protocol.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use kernel::sched::{self, below, pick, Config};

use super::hostile;
use super::hostile_client::HostileClient;
use super::hostile_server::{Calls, HostileServer};
use super::nfsd::Nfsd;
use super::outcome::{to_call, May, Seen};
use super::peer::{Manners, Peer};
use super::peer_steps::PeerSteps;
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::cm;
use crate::bindings::fabric::{fabric, Device};
use crate::bindings::fabric_peer as queue;
use crate::bindings::rpc::{Call, Client, Manner};
use crate::bindings::svc::{Answer, Program};

/// The XIDs of hostile clients are from this on.
const STRANGERS: u32 = 0x8000_0000;

/// The longest head or tail of a Reply.
const MOST: usize = 2000;

/// A program that also gets Calls which the play has not composed.
struct Open {
    nfsd: Rc<Nfsd>,
    payload: usize,
}

impl Program for Open {
    fn execute(&self, connection: usize, call: &[u8]) -> Option<Answer> {
        let rpc = Rpc::of_call(call).map(|(rpc, _)| rpc);
        match rpc {
            Some(rpc) if rpc.xid < STRANGERS => return self.nfsd.execute(connection, call),
            _ if call.len() < 40 => return None,
            _ => {}
        }
        say!("executes a Call of {} bytes", call.len());
        let parts = rpc.map(|rpc| (rpc.reply_parts(), rpc.is_eligible()));
        let short = |(head, data, tail): &(Vec<u8>, Vec<u8>, Vec<u8>)| {
            head.len() < MOST && tail.len() < MOST && data.len() <= self.payload
        };
        if let Some(((head, data, tail), eligible)) = parts.filter(|(parts, _)| short(parts)) {
            return Some(Answer {
                head,
                data,
                tail,
                eligible,
                from_file: below(2) == 0,
                flavor: 1,
            });
        }
        let mut head = call[..4].to_vec();
        head.extend(1_u32.to_be_bytes());
        head.extend(hostile::bytes(below(400) & !3));
        let data = hostile::bytes([0, 1, below(self.payload)][below(3)]);
        let tail = vec![0; data.len().wrapping_neg() % 4];
        Some(Answer {
            head,
            eligible: !data.is_empty() && below(2) == 0,
            data,
            tail,
            from_file: false,
            flavor: 1,
        })
    }
}

/// What the rest of the world draws.
pub(super) fn device() -> Device {
    let mut device = Device::default();
    device.attrs.max_qp_wr = pick(&[200, 1000, 16_384]) as i32;
    device.attrs.max_send_sge = pick(&[4, 16]) as i32;
    device.attrs.max_sge_rd = pick(&[1, 5, 16]) as i32;
    device
}

/// Clients that send anything talk to the server. Others are served.
pub(super) fn server_meets_hostile_clients(config: &Config) -> Result<Seen, String> {
    meet_hostile_clients(config, |_| ())
}

/// The same over iWARP, where clients may end Reads early. Law: no Call holds a part of another.
pub(super) fn server_meets_hostile_iwarp_clients(config: &Config) -> Result<Seen, String> {
    meet_hostile_clients(config, |device| {
        device.iwarp = true;
        device.attrs.max_fast_reg_page_list_len = pick(&[4, 16, 256]);
        device.short_reads = pick(&[2, 5]);
    })
}

fn meet_hostile_clients(config: &Config, draw: impl FnOnce(&mut Device)) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[8192, 65_536]);
    let mut device = device();
    draw(&mut device);
    let world = World {
        device,
        tunables: vec![
            ("sunrpc/svc_rdma/max_requests", pick(&[4, 8, 32, 128])),
            ("sunrpc/svc_rdma/max_req_size", pick(&[1024, 4096, 8192])),
            ("sunrpc/svc_rdma/short_replies", pick(&[0, 1])),
            ("sunrpc/svc_rdma/remote_invalidation", pick(&[0, 1, 1])),
            ("sunrpc/svc_rdma/pulled_replies", pick(&[0, 1, 1])),
            ("sunrpc/svc_rdma/max_pulled_pages", pick(&[1, 40, 65_536])),
        ],
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let manners = Manners {
        credits: pick(&[1, 3, 16, 64]),
        breaks_off: 0,
        leaves: 0,
        errors: false,
    };
    let count = pick(&[3, 10, 40]);
    let rpcs = (0..count).map(|n| Rpc::any(n + 1, payload)).collect();
    let honest = Rc::new(Peer::new(manners, nfsd.clone(), rpcs));
    let acts = pick(&[20, 100, 300]);
    let hostile: Vec<Rc<HostileClient>> = (0..pick(&[1, 1, 2, 3]))
        .map(|number| {
            Rc::new(HostileClient::new(
                (STRANGERS >> 24) + number,
                acts,
                payload,
            ))
        })
        .collect();
    let program = Open {
        nfsd,
        payload: payload as usize,
    };
    world::begin(config, world, Rc::new(program))?;
    sched::add_source(Rc::new(PeerSteps(honest.clone())));
    for client in &hostile {
        sched::add_source(client.clone());
    }
    let is_done = || honest.is_done();
    sched::run_until("an honest client", is_done)
        .map_err(|why| format!("{why}; it waits for {}", honest.waits_for()))?;
    // What is left of the hostile ones goes on, as long as they have something to do.
    sched::run(20_000, || false)?;
    for client in &hostile {
        client.be_silent();
    }
    sched::run_until("a Send without a Receive", || !queue::sends_are_stuck())?;
    let denied = fabric(|f| core::mem::take(&mut f.denied));
    if !denied.is_empty() {
        return Err(format!("an honest end was denied: {denied:?}"));
    }
    let seen = Seen {
        replies: u64::from(honest.replies.get()),
        hostile: hostile.iter().map(|client| client.acts.get()).sum(),
        connections: u64::from(honest.connections.get()),
        ..Seen::default()
    };
    // Some are still connected when the server stops.
    for client in &hostile {
        if below(2) == 0 {
            client.end();
        }
    }
    honest.close();
    world::stop()?;
    for client in &hostile {
        client.end();
    }
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        ..seen
    })
}

/// A server that answers anything is mounted by one client, and that of the module by another.
pub(super) fn client_meets_hostile_server(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[8192, 65_536]);
    let world = World {
        device: device(),
        tunables: vec![
            ("sunrpc/svc_rdma/max_requests", pick(&[4, 8, 32, 128])),
            ("sunrpc/svc_rdma/pulled_replies", pick(&[0, 1, 1])),
            ("sunrpc/rdma_slot_table_entries", pick(&[4, 8, 128])),
        ],
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let shapes = |count: u32| -> Vec<Rpc> {
        (0..count)
            .map(|_| Rpc::any(0, payload).with_words())
            .collect()
    };
    let (first, last) = (shapes(pick(&[3, 10, 40])), shapes(3));
    let other = shapes(pick(&[3, 10]));
    world::begin(config, world, nfsd)?;
    let calls = Calls::default();
    let server = Rc::new(HostileServer::new(pick(&[20, 100, 400]), calls.clone()));
    sched::add_source(server.clone());
    let replies = Rc::new(Cell::new(0));
    let clients: Rc<RefCell<Vec<Rc<Client>>>> = Rc::default();
    let (all, counted) = (clients.clone(), replies.clone());
    sched::spawn("mount", move || {
        let misled = Rc::new(
            Client::to(cm::hostile_address(), 1 << 24, Manner::PATIENT).expect("a transport"),
        );
        all.borrow_mut().push(misled.clone());
        for shape in first {
            misled.start(misled_call(shape, &calls));
        }
        let client = Rc::new(Client::new(2 << 24, Manner::PATIENT).expect("a transport"));
        all.borrow_mut().push(client.clone());
        for shape in other {
            client.start(to_call(shape, May { fail: false }, &counted));
        }
    });
    sched::run_until("mount", || clients.borrow().len() == 2)?;
    let [misled, client] = [0, 1].map(|nth| clients.borrow()[nth].clone());
    // Whatever the hostile server does, another one answers.
    sched::run_until("a client of another server", || client.tasks.get() == 0)?;
    sched::run(20_000, || misled.tasks.get() == 0)?;
    let denied = fabric(|f| core::mem::take(&mut f.denied));
    if !denied.is_empty() {
        return Err(format!("an honest end was denied: {denied:?}"));
    }
    // Then its address leads to a server that keeps to the protocol.
    server.be_silent();
    server.end();
    sched::run_until("the misled client", || misled.tasks.get() == 0)
        .map_err(|why| format!("{}{why}", crate::bindings::xprt::describe()))?;
    for shape in last {
        misled.start(to_call(shape, May { fail: false }, &replies));
    }
    sched::run_until("the client that was misled", || misled.tasks.get() == 0)
        .map_err(|why| format!("{}{why}", crate::bindings::xprt::describe()))?;
    let refused = misled.failures.get();
    sched::spawn("umount", move || {
        misled.put();
        client.put();
    });
    clients.borrow_mut().clear();
    server.remove();
    let seen = Seen {
        replies: replies.get(),
        refused,
        hostile: server.acts.get(),
        ..Seen::default()
    };
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        ..seen
    })
}

/// An RPC that may get any Reply, or fail.
fn misled_call(shape: Rpc, calls: &Calls) -> Call {
    let call = to_call(shape, May { fail: true }, &Rc::default());
    let (encode, calls) = (call.encode, calls.clone());
    Call {
        encode: Box::new(move |xid, attempt| {
            if xid != 0 {
                calls.borrow_mut().insert(xid, shape.with_xid(xid));
            }
            encode(xid, attempt)
        }),
        decode: Box::new(|_, _| ()),
        ..call
    }
}
