// SPDX-License-Identifier: GPL-2.0

//! Loads and unloads the module, and what must be left.

use core::cell::{Cell, RefCell};
use core::pin::Pin;
use std::rc::Rc;

use kernel::alloc::{flags::GFP_KERNEL, KBox};
use kernel::sched::{self, Config, Ended, MOST_STEPS};
use kernel::{memory, ThisModule};

use super::files;

use crate::bindings::cm_steps::CmSteps;
use crate::bindings::fabric::Device;
use crate::bindings::fabric_steps::FabricSteps;
use crate::bindings::svc::Program;
use crate::bindings::{
    backchannel, cm, credit_law, debugfs as debug, dma, fabric, hotplug, ib_core, memory as pages,
    nfsd_threads, svc, unmapped, xprt, xprt_connect,
};
use crate::client::{self, Client};
use crate::debugfs::Tree;
use crate::server::{self, Server};
use crate::sunrpc::ExitBarrier;
use crate::sysctl::Registration;
use crate::verbs::IbClient;

/// The module, loaded.
struct Module {
    _client: Client,
    _server: Server,
    _devices: Pin<KBox<IbClient>>,
    _tunables: [Registration; 2],
    _debugfs: Tree,
    _exit_barrier: ExitBarrier,
}

thread_local! {
    static MODULE: RefCell<Option<Module>> = const { RefCell::new(None) };
    static UNLOADED: Cell<bool> = const { Cell::new(false) };
}

/// What a world is made of.
pub(crate) struct World {
    pub(crate) device: Device,
    /// Files under `/proc/sys`, and their values.
    pub(crate) tunables: Vec<(&'static str, u32)>,
    pub(crate) threads: usize,
    /// The longest payload of the service.
    pub(crate) payload: u32,
}

/// The tunables, as they are when the module is loaded.
const DEFAULTS: [(&str, u32); 15] = [
    ("sunrpc/rdma_slot_table_entries", 128),
    ("sunrpc/svc_rdma/max_requests", 128),
    ("sunrpc/svc_rdma/max_bc_requests", 16),
    ("sunrpc/svc_rdma/max_req_size", 4096),
    ("sunrpc/svc_rdma/max_reply_size", 0),
    ("sunrpc/svc_rdma/remote_invalidation", 1),
    ("sunrpc/svc_rdma/short_replies", 1),
    ("sunrpc/svc_rdma/pulled_replies", 1),
    ("sunrpc/svc_rdma/max_pulled_pages", 65_536),
    ("sunrpc/svc_rdma/stall_seconds", 90),
    ("sunrpc/svc_rdma/exposed_seconds", 30),
    ("sunrpc/rdma_max_inline_write", 4096),
    ("sunrpc/rdma_max_bc_requests", 16),
    ("sunrpc/rdma_pulled_replies", 1),
    ("sunrpc/rdma_stall_seconds", 90),
];

/// Begins a run: loads the module, and starts the server.
pub(crate) fn begin(config: &Config, world: World, program: Rc<dyn Program>) -> Result<(), String> {
    sched::begin(config);
    memory::on_free(dma::freed);
    dma::on_unmap(unmapped);
    fabric::set_device(world.device);
    cm::begin();
    credit_law::begin();
    xprt_connect::begin();
    sched::add_source(Rc::new(FabricSteps));
    sched::add_source(Rc::new(CmSteps));
    let (threads, payload) = (world.threads, world.payload);
    let config = *config;
    let is_started = Rc::new(Cell::new(false));
    let started = is_started.clone();
    sched::spawn("modprobe", move || {
        let debugfs = Tree::new().expect("the only tree");
        let tunables = [server::register_tunables(), client::register_tunables()];
        let devices = KBox::pin_init(IbClient::register(), GFP_KERNEL).expect("a registration");
        let server = Server::register(ThisModule::THIS).expect("a registration");
        let client = Client::register(ThisModule::THIS).expect("a registration");
        MODULE.set(Some(Module {
            _client: client,
            _server: server,
            _devices: devices,
            _tunables: tunables.map(|tunables| tunables.expect("a registration")),
            _debugfs: debugfs,
            _exit_barrier: ExitBarrier::new(),
        }));
        for (file, value) in DEFAULTS.iter().chain(&world.tunables) {
            pages::write_sysctl(file, *value);
        }
        files::start(&config, &world.tunables, threads);
        nfsd_threads::start(threads, payload, program);
        started.set(true);
    });
    sched::run_until("modprobe", || is_started.get() && cm::listener().is_some())
}

/// Stops the server.
pub(crate) fn stop() -> Result<(), String> {
    let done = Rc::new(core::cell::Cell::new(false));
    let is_done = done.clone();
    sched::spawn("nfsdctl", move || {
        nfsd_threads::stop();
        done.set(true);
    });
    sched::run_until("nfsdctl", || is_done.get())
}

/// Unloads the module, as `delete_module()`; `false` if it is in use, or unloaded already.
pub(crate) fn rmmod() -> bool {
    if !ThisModule::THIS.try_stop() {
        return false;
    }
    say!("the module is unloaded");
    drop(MODULE.take());
    let inside = sched::in_module_code();
    if !inside.is_empty() {
        sched::fail(format_args!(
            "the module is unloaded while its code runs: {inside:?}"
        ));
    }
    let left = left_of_module();
    if !left.is_empty() {
        sched::fail(format_args!("left by rmmod: {}", left.join(", ")));
    }
    say!("the module is gone");
    UNLOADED.set(true);
    true
}

/// Whether the module is being unloaded, or gone.
pub(crate) fn is_unloading() -> bool {
    ThisModule::THIS.is_going()
}

/// Whether the module is gone.
pub(crate) fn is_unloaded() -> bool {
    UNLOADED.get()
}

/// Ends a run: stops the server, unloads the module, and looks whether anything is left.
pub(crate) fn end() -> Result<(), String> {
    files::stop();
    if nfsd_threads::runs() {
        stop()?;
    }
    sched::spawn("rmmod", move || {
        // Transports are destroyed in work items.
        let most = sched::now() + 200_000_000_000;
        while !is_unloaded() && !rmmod() {
            if sched::now() > most {
                let refs = ThisModule::THIS.refs();
                let (waiting, state) = (sched::waiting(), xprt::describe());
                sched::fail(format_args!(
                    "{refs} module references are left; {waiting:?}; {state}"
                ));
            }
            sched::wait_until(8, sched::now() + 10_000_000);
        }
    });
    // What is there tells why the device is not released.
    sched::run_until("rmmod", is_unloaded)
        .map_err(|why| format!("{why}; there are {}", left_of_module().join(", ")))?;
    // What is still on its way arrives nowhere.
    match sched::run(MOST_STEPS, || false)? {
        Ended::Quiet => {}
        ended => return Err(format!("after rmmod: {ended:?}")),
    }
    let mut left = left_of_module();
    for (what, count) in [
        ("pages", pages::pages() as isize),
        ("namespaces", pages::nets()),
        ("contexts", sched::alive() as isize),
    ] {
        if count != 0 {
            left.push(format!("{count} {what}"));
        }
    }
    let queues = fabric::leftovers();
    if !queues.is_empty() {
        left.push(queues);
    }
    let mut errors = kernel::print::errors();
    // The module says so if the device of the listener is away for seconds.
    errors.retain(|error| !(hotplug::was_used() && error.starts_with("cannot listen on")));
    // It says so, too, if a client cannot use its device.
    let lacks_inv = fabric::fabric(|f| f.device.lacks_inv);
    errors.retain(|error| !(lacks_inv && error.contains("it lacks invalidation by work request")));
    if !errors.is_empty() {
        left.push(format!("in the log: {errors:?}"));
    }
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("left after rmmod: {}", left.join(", ")))
    }
}

/// What the module may not have any more when it is gone.
fn left_of_module() -> Vec<String> {
    let counts = [
        ("mappings", dma::mappings()),
        ("cm_ids", cm::ids()),
        ("work items", kernel::busy_work_items()),
        ("files", debug::debugfs_entries()),
        ("transport classes", xprt::classes()),
        ("transport classes of the server", svc::svc_classes()),
        ("clients of the RDMA core", ib_core::has_client().into()),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count != 0);
    let counts = counts.map(|(what, count)| format!("{count} {what}"));
    let objects = memory::live();
    let objects = (!objects.is_empty()).then(|| format!("allocations {objects:?}"));
    counts.chain(objects).collect()
}

/// Gives up a run that has failed. The module cannot be loaded again in this process.
pub(crate) fn abandon() {
    MODULE.with(|module| {
        if let Ok(mut module) = module.try_borrow_mut() {
            core::mem::forget(module.take());
        }
    });
    sched::abandon();
    kernel::abandon_work_items();
    memory::abandon();
    dma::abandon();
    pages::abandon();
    fabric::abandon();
    cm::abandon();
    svc::abandon();
    backchannel::abandon();
    debug::forget_debugfs();
    xprt::abandon();
}
