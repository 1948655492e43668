// SPDX-License-Identifier: GPL-2.0

//! Clients of the RDMA core and their devices, as in `drivers/infiniband/core/device.c`: when a
//! client is told of a device, and how its registration ends while devices come and go.

use core::cell::{Cell, RefCell};

use kernel::ffi::c_int;
use kernel::rwsem::RwSem;
use kernel::sched;

use super::fabric::*;
use super::*;

#[derive(Clone, Copy)]
struct Ibdev {
    /// `DEVICE_REGISTERED`.
    registered: bool,
    refs: usize,
    /// `CLIENT_DATA_REGISTERED`: the client knows the device.
    known: bool,
}

struct Core {
    /// The address of the client.
    client: usize,
    /// `CLIENT_REGISTERED`.
    registered: bool,
    /// One for the registration, and one for each device that the client knows.
    uses: usize,
    ibdevs: [Ibdev; 2],
}

/// The semaphores of the core.
struct Locks {
    devices: RwSem,
    clients: RwSem,
    /// `client_data_rwsem` of each device.
    data: [RwSem; 2],
}

thread_local! {
    static CORE: RefCell<Core> = const {
        let ibdev = Ibdev { registered: true, refs: 1, known: false };
        RefCell::new(Core { client: 0, registered: false, uses: 0, ibdevs: [ibdev; 2] })
    };
    static GONE: [Cell<bool>; 2] = const { [Cell::new(false), Cell::new(false)] };
    static LOCKS: &'static Locks = Box::leak(Box::new(Locks {
        devices: RwSem::new("devices_rwsem"),
        clients: RwSem::new("clients_rwsem"),
        data: [const { RwSem::new("ib_device::client_data_rwsem") }; 2],
    }));
}

/// Keys that wait for the last reference to the client, or to a device.
const USES_ZERO: usize = 15;
const UNREGISTERED: usize = 16;

/// Whether the device of the server (0) or client (1) is gone, or about to go.
pub(super) fn is_gone(which: usize) -> bool {
    GONE.with(|gone| gone[which].get())
}

/// The device goes, or is back.
pub(super) fn set_gone(which: usize, is_gone: bool) {
    GONE.with(|gone| gone[which].set(is_gone));
}

fn core<R>(f: impl FnOnce(&mut Core) -> R) -> R {
    CORE.with_borrow_mut(f)
}

fn locks() -> &'static Locks {
    LOCKS.with(|locks| *locks)
}

impl Core {
    fn put_client(&mut self) {
        self.uses -= 1;
        if self.uses == 0 {
            sched::wake(USES_ZERO);
        }
    }

    fn put_device(&mut self, which: usize) {
        self.ibdevs[which].refs -= 1;
        if self.ibdevs[which].refs == 0 {
            sched::wake(UNREGISTERED);
        }
    }
}

/// Whether a client is registered.
pub(crate) fn has_client() -> bool {
    core(|core| core.client != 0)
}

/// `add_client_context()`.
fn add(which: usize) {
    let data = &locks().data[which];
    data.down_write();
    let client = core(|core| {
        if core.uses == 0 {
            return None;
        }
        let ibdev = &mut core.ibdevs[which];
        if ibdev.known {
            return None;
        }
        core.uses += 1;
        ibdev.refs += 1;
        Some(core.client)
    });
    let Some(client) = client else {
        data.up_write();
        return;
    };
    data.downgrade_write();
    let client: *mut ib_client = core::ptr::with_exposed_provenance_mut(client);
    // SAFETY: The reference keeps the client registered, and the device is there.
    let added = unsafe {
        let add = (*client).add.expect("an operation");
        sched::module_code(|| add(devices()[which]))
    };
    assert_eq!(added, 0);
    core(|core| core.ibdevs[which].known = true);
    data.up_read();
}

/// `remove_client_context()`: the client may not use the device any more when this returns, unless
/// another context removes it already.
fn remove(which: usize) {
    let data = &locks().data[which];
    data.down_write();
    let client = core(|core| {
        let known = core::mem::take(&mut core.ibdevs[which].known);
        known.then_some(core.client)
    });
    data.up_write();
    let Some(client) = client else {
        return;
    };
    let client: *mut ib_client = core::ptr::with_exposed_provenance_mut(client);
    let device = devices()[which];
    // SAFETY: The client knows the device, which keeps the client registered.
    unsafe {
        let remove = (*client).remove.expect("an operation");
        sched::module_code(|| remove(device, core::ptr::null_mut()));
    }
    let used = fabric(|f| f.owners.values().filter(|at| **at == device.addr()).count());
    if used > 0 {
        sched::fail(format_args!(
            "a device is gone, and {used} domains and completion queues of it are not"
        ));
    }
    core(|core| {
        core.put_device(which);
        core.put_client();
    });
}

pub(crate) unsafe extern "C" fn ib_register_client(client: *mut ib_client) -> c_int {
    let locks = locks();
    core(|core| core.uses = 1);
    locks.devices.down_write();
    locks.clients.down_write();
    core(|core| {
        core.client = client.expose_provenance();
        core.registered = true;
    });
    for which in 0..2 {
        if core(|core| core.ibdevs[which].registered) {
            add(which);
        }
    }
    locks.clients.up_write();
    locks.devices.up_write();
    0
}

pub(crate) unsafe extern "C" fn ib_unregister_client(client: *mut ib_client) {
    kernel::lockdep::might_sleep("ib_unregister_client()");
    assert_eq!(core(|core| core.client), client.addr());
    let clients = &locks().clients;
    clients.down_write();
    core(|core| {
        core.put_client();
        core.registered = false;
    });
    clients.up_write();
    for which in 0..2 {
        // ib_device_try_get()
        let got = core(|core| {
            let refs = &mut core.ibdevs[which].refs;
            let got = *refs > 0;
            *refs += usize::from(got);
            got
        });
        if got {
            remove(which);
            core(|core| core.put_device(which));
        }
    }
    // Others may still be removing devices.
    while core(|core| core.uses > 0) {
        sched::wait_on(USES_ZERO);
    }
    clients.down_write();
    core(|core| core.client = 0);
    clients.up_write();
}

/// The first half of `disable_device()`: the clients are told that a device goes.
pub(super) fn disable(which: usize) {
    let locks = locks();
    locks.devices.down_write();
    core(|core| core.ibdevs[which].registered = false);
    locks.devices.up_write();
    remove(which);
}

/// The second half of `disable_device()`: waits for the last reference to a device.
pub(super) fn wait_unregistered(which: usize) {
    core(|core| core.put_device(which));
    while core(|core| core.ibdevs[which].refs > 0) {
        sched::wait_on(UNREGISTERED);
    }
}

/// `enable_device_and_get()`: a device is there, and the clients are told.
pub(super) fn enable(which: usize) {
    let locks = locks();
    locks.devices.down_write();
    core(|core| {
        core.ibdevs[which].refs = 1;
        core.ibdevs[which].registered = true;
    });
    locks.devices.downgrade_write();
    locks.clients.down_read();
    if core(|core| core.registered) {
        add(which);
    }
    locks.clients.up_read();
    locks.devices.up_read();
}
