// SPDX-License-Identifier: GPL-2.0

//! The world of plays in which clients of the module talk to its server.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use kernel::memory;
use kernel::sched::{self, below, pick, Config};

use super::callbacks::{self, CallbackProgram};
use super::closings;
use super::faults::Faults;
use super::files;
use super::nfsd::{Nfsd, NfsdOptions};
use super::outcome::{to_call, May, Seen};
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::fabric::fabric;
use crate::bindings::rpc::{Call, Client};
use crate::bindings::{
    dma, end_callbacks, hotplug, nfsd_threads, rqst, start_callbacks, svc, RPC_TASK_SOFT,
    RPC_TASK_SOFTCONN,
};

/// A key that nothing wakes.
const UMOUNT: usize = 21;

/// Clients of the module talk to its server.
pub(super) fn talk(config: &Config, draw: impl FnOnce(&mut Faults)) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let small = pick(&[8192, 65_536]);
    let mut faults = Faults::none();
    draw(&mut faults);
    let payload = if faults.large { 1 << 20 } else { small };
    let mut tunables = vec![
        ("sunrpc/svc_rdma/max_requests", pick(&[4, 8, 32, 128])),
        ("sunrpc/svc_rdma/max_req_size", pick(&[1024, 4096, 8192])),
        ("sunrpc/svc_rdma/short_replies", pick(&[0, 1])),
        ("sunrpc/svc_rdma/remote_invalidation", pick(&[0, 1, 1])),
        ("sunrpc/svc_rdma/pulled_replies", pick(&[0, 1])),
        ("sunrpc/rdma_slot_table_entries", pick(&[4, 8, 128])),
    ];
    tunables.extend(&faults.tunables);
    faults.device.attrs.max_qp_wr = pick(&[200, 1000, 16_384]) as i32;
    faults.device.attrs.max_send_sge = pick(&[4, 16]) as i32;
    let world = World {
        device: faults.device,
        tunables,
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let (large, bare) = (faults.large, faults.bare);
    let any = move || {
        let rpc = if bare {
            Rpc::write(0, 0)
        } else {
            Rpc::any(0, payload).with_words()
        };
        if large {
            rpc.with_large_item(payload)
        } else {
            rpc
        }
    };
    let shapes: Vec<Vec<Rpc>> = (0..pick(&[1, 1, 2]))
        .map(|_| {
            let count = if faults.idle {
                1
            } else if faults.large {
                12
            } else {
                pick(&[3, 10, 40])
            };
            (0..count).map(|_| any()).collect()
        })
        .collect();
    nfsd_threads::start_late(faults.threads_late);
    world::begin(config, world, nfsd.clone())?;
    nfsd.set_options(faults.nfsd);
    let manner = faults.tasks;
    let clients: Rc<RefCell<Vec<Rc<Client>>>> = Rc::default();
    let replies = Rc::new(Cell::new(0));
    let (all, counted) = (clients.clone(), replies.clone());
    let wanted = shapes.len();
    let may = May {
        fail: faults.mappings > 0
            || faults.allocations > 0
            || faults.nfsd.ineligible > 0
            || faults.device.lacks_inv
            || manner.flags & (RPC_TASK_SOFT | RPC_TASK_SOFTCONN) != 0,
    };
    let breaks_only = !may.fail
        && faults.unplugs == 0
        && faults.moves == 0
        && faults.device.refuses + faults.device.refuses_inv == 0
        && faults.device.few_queues == 0
        && faults.device.few_mrs == 0
        // A thread of nfsd that is late accepts no connection.
        && faults.nfsd.late == 0
        && faults.device.stalls_reads == 0
        && faults.kills == 0;
    let calls = faults.calls;
    let program = calls.map(|calls| Rc::new(CallbackProgram::new(calls)));
    if let Some(program) = &program {
        start_callbacks(program.clone(), pick(&[1, 2, 4]) as usize);
    }
    sched::spawn("mount", move || {
        for (number, shapes) in (1..).zip(shapes) {
            let client = Rc::new(Client::new(number << 24, manner).expect("a transport"));
            client.patient.set(breaks_only);
            all.borrow_mut().push(client.clone());
            if calls.is_some() {
                assert_eq!(client.set_up_backchannel(), 0);
            }
            for shape in shapes {
                client.start(to_call(shape, may, &counted));
            }
        }
    });
    sched::run_until("mount", || clients.borrow().len() == wanted)?;
    let is_idle = || {
        let all = clients.borrow();
        all.iter().all(|client| client.tasks.get() == 0)
    };
    if faults.idle {
        sched::run_until("the first RPCs", is_idle)?;
    }
    memory::fail_one_in(faults.allocations);
    dma::fail_maps(faults.mappings);
    rqst::kill_answered(faults.signals);
    hotplug::unplug_opening(faults.openings);
    svc::stand_still(faults.stands);
    let failed = memory::failed();
    let loses = faults.unplugs > 0 || faults.moves > 0;
    // A Reply that is read too late is exposed no more.
    let late = faults.device.late > 0;
    let device = &faults.device;
    let refuses = device.refuses + device.refuses_inv + device.few_queues > 0;
    // A connection with too few MRs is not made.
    let refuses = refuses || device.few_mrs > 0 || device.lacks_inv;
    let late = late || device.stalls_reads + device.stalls_sends > 0;
    let breaks = loses || late || faults.manners.breaks_off > 0 || refuses;
    let outcome = calls.map(|calls| {
        let fail = may.fail || breaks || calls.drops > 0 || calls.late > 0;
        callbacks::call(calls, May { fail })
    });
    let is_done = || {
        let plugged = !hotplug::is_busy();
        is_idle() && plugged && outcome.as_ref().is_none_or(|outcome| outcome.done.get())
    };
    let lost = Rc::new(Cell::new(0));
    let (looks, steps) = if faults.kills > 0 || loses {
        (400, 50)
    } else {
        (40, 500)
    };
    for _ in 0..looks {
        if is_done() {
            break;
        }
        sched::run(steps, is_done)?;
        say!("{}", crate::bindings::xprt::describe());
        if sched::one_in(faults.unplugs) {
            lost.set(lost.get() + 1);
            hotplug::unplug(below(2));
        }
        if sched::one_in(faults.moves) {
            lost.set(lost.get() + 1);
            hotplug::move_address();
        }
        if sched::one_in(faults.kills) {
            clients.borrow()[below(wanted)].kill();
        }
        if sched::one_in(faults.manners.breaks_off) {
            lost.set(lost.get() + 1);
            clients.borrow()[below(wanted)].inject_disconnect();
        }
    }
    memory::fail_one_in(0);
    dma::fail_maps(0);
    fabric(|f| {
        f.device.refuses = 0;
        f.device.refuses_inv = 0;
        f.device.few_queues = 0;
        f.device.few_mrs = 0;
        f.device.late = 0;
        f.device.stalls_reads = 0;
        f.find_receives();
    });
    rqst::kill_answered(0);
    hotplug::unplug_opening(0);
    svc::stand_still(0);
    if let Some(program) = &program {
        program.be_well();
    }
    nfsd.set_options(NfsdOptions {
        late: 0,
        ..faults.nfsd
    });
    sched::run_until("the clients", is_done)
        .map_err(|why| format!("{}{why}", crate::bindings::xprt::describe()))?;
    let denied = fabric(|f| core::mem::take(&mut f.denied));
    // A task that gives up takes its handles back, though the server may still use one.
    let gives_up = faults.kills > 0 || manner.timeout > 0;
    if !denied.is_empty() && lost.get() == 0 && !may.fail && !breaks && !gives_up {
        return Err(format!("an end was denied: {denied:?}"));
    }
    let is_patient =
        calls.is_none_or(|calls| calls.drops + calls.late + calls.long + calls.gives_up == 0);
    let faultless = is_patient && !may.fail && !breaks && !gives_up && faults.signals == 0;
    let pulled = files::at_rest(faultless)?;
    let all = clients.take();
    if faultless && calls.is_none() && sched::one_in(4) {
        let counted = replies.clone();
        closings::close_all(all.clone(), move || to_call(any(), may, &counted))?;
    }
    let failures = outcome.as_ref().map_or(0, |outcome| outcome.failures.get());
    let refused = failures + all.iter().map(|client| client.failures.get()).sum::<u64>();
    let killed = all.iter().map(|client| client.killed.get()).sum::<u64>()
        + outcome.as_ref().map_or(0, |outcome| outcome.killed.get());
    let calls_back = calls.is_some();
    let last_calls = outcome.as_deref().map(callbacks::call_at_umount);
    sched::spawn("umount", move || {
        if calls_back {
            sched::wait_until(UMOUNT, sched::now() + below(2_000_000) as u64);
        }
        for client in all {
            if calls_back {
                client.end_backchannel();
            }
            client.put();
        }
        end_callbacks();
    });
    if let Some(last) = last_calls {
        sched::run_until("the last backchannel Calls", || last.done.get())?;
    }
    let backward = outcome.map_or(0, |outcome| outcome.replies.get());
    let mut seen = Seen {
        failed: memory::failed() - failed,
        replies: replies.get() + backward,
        backward,
        connections: lost.get(),
        refused,
        killed,
        pulled,
        ..Seen::default()
    };
    world::end()?;
    seen.steps = sched::steps();
    Ok(seen)
}
