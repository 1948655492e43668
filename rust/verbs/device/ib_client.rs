// SPDX-License-Identifier: GPL-2.0

//! RDMA devices come and go; whoever uses one holds a [`DeviceRef`].
//!
//! The module registers with the RDMA core as a client ([`IbClient`]). When a device is removed,
//! every [`RemovalNotifier`] for it is told, and the removal then waits until the last lease is
//! returned: no queue pair, memory region or mapping outlives its device.
//!
//! Lock order: `DEVICES`, then a device's `state`. Both are mutexes; neither is taken on a data
//! path. But a transport that connects again waits for both, so nothing that is allocated with one
//! of them held may wait for I/O: it might be that transport's.

use core::{
    ffi::c_void,
    ops::Deref,
    pin::Pin,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    lib::memalloc::NoIo,
    trace::trace,
    verbs::rw::rw_ctxt, //
};

use super::attrs::DeviceAttrs;

kernel::sync::global_lock! {
    // SAFETY: `IbClient::register` initialises it before the first device can be announced.
    unsafe(uninit) static DEVICES: Mutex<KVec<Arc<Device>>> = KVec::new();
}

/// A device that the RDMA core has announced and not yet taken back.
///
/// # Invariants
///
/// `raw` is valid while the device is in `DEVICES` or has a lease: its removal waits for both.
#[pin_data]
struct Device {
    raw: NonNull<bindings::ib_device>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    returned: CondVar,
}

// SAFETY: `raw` is only handed to functions of the RDMA core, which may be called from any thread.
unsafe impl Send for Device {}
// SAFETY: As above; everything else is locked.
unsafe impl Sync for Device {}

impl Device {
    /// For traces.
    fn name(&self) -> DeviceName {
        // SAFETY: The device is valid, by the type's invariants.
        unsafe { DeviceName::of(self.raw) }
    }
}

/// A copy of a device's name: an administrator can give it another at any time.
pub(crate) struct DeviceName([u8; bindings::IB_DEVICE_NAME_MAX as usize]);

impl DeviceName {
    /// # Safety
    ///
    /// `device` is valid.
    unsafe fn of(device: NonNull<bindings::ib_device>) -> Self {
        let mut bytes = [0; bindings::IB_DEVICE_NAME_MAX as usize];
        // SAFETY: By this function's contract.
        let name = unsafe { &raw const (*device.as_ptr()).name };
        // Whatever is written meanwhile, the last byte of the copy ends it.
        for (at, byte) in bytes.iter_mut().enumerate().rev().skip(1) {
            // SAFETY: Within the name. One that is just given is read in part, byte by byte.
            *byte = unsafe { name.cast::<u8>().add(at).read_volatile() };
        }
        Self(bytes)
    }
}

impl Deref for DeviceName {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

struct State {
    removing: bool,
    leases: u32,
    /// One for each connection, of which there may be many.
    notices: KVVec<Watcher>,
}

/// Whom to tell of the removal, and how.
#[derive(Clone, Copy)]
struct Watcher {
    who: *const c_void,
    tell: unsafe fn(*const c_void),
}

// SAFETY: A `RemovalNotifier` is only made for something that may be called from any thread.
unsafe impl Send for Watcher {}
// SAFETY: `who` is called under the device's lock. A shared notice is good for `end` alone, which
// only compares it, under the same lock.
unsafe impl Sync for Watcher {}

/// The right to use a device: it is not removed before the last lease is returned.
pub(in crate::verbs) struct DeviceRef(Arc<Device>);

impl DeviceRef {
    /// Takes a lease on a device.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the device is not known or is about to be removed.
    pub(in crate::verbs) fn take(raw: *mut bindings::ib_device) -> Result<Self> {
        let devices = DEVICES.lock();
        let device = devices
            .iter()
            .find(|d| d.raw.as_ptr() == raw)
            .ok_or(ENODEV)?;
        let mut state = device.state.lock();
        if state.removing {
            return Err(ENODEV);
        }
        state.leases = state.leases.checked_add(1).ok_or(EOVERFLOW)?;
        trace!(rpcrdma_client_register(&device.name(), state.leases));
        Ok(Self(device.clone()))
    }

    /// The device; valid while the lease is held.
    pub(in crate::verbs) fn device(&self) -> *mut bindings::ib_device {
        self.0.raw.as_ptr()
    }

    /// The device's name.
    pub(in crate::verbs) fn device_name(&self) -> DeviceName {
        self.0.name()
    }

    /// Has `tell(who)` called when the device is to be removed, until the notice is dropped.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the removal has begun, `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `tell(who)` must be sound from any thread until the notice is dropped. It is called with the
    /// device's state locked: it must neither return a lease nor drop a notice.
    pub(in crate::verbs) unsafe fn notify(
        &self,
        who: *const c_void,
        tell: unsafe fn(*const c_void),
    ) -> Result<RemovalNotifier> {
        let watcher = Watcher { who, tell };
        let mut state = self.0.state.lock();
        if state.removing {
            return Err(ENODEV);
        }
        let _noio = NoIo::begin();
        state.notices.push(watcher, GFP_KERNEL)?;
        Ok(RemovalNotifier {
            device: self.0.clone(),
            watcher,
        })
    }
}

impl Drop for DeviceRef {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        trace!(rpcrdma_client_unregister(&self.0.name(), state.leases));
        state.leases -= 1;
        if state.leases == 0 {
            if state.removing {
                trace!(rpcrdma_client_completion(&self.0.name()));
            }
            self.0.returned.notify_all();
        }
    }
}

/// A registered wish to be told of a device's removal.
#[must_use]
pub(in crate::verbs) struct RemovalNotifier {
    device: Arc<Device>,
    watcher: Watcher,
}

impl RemovalNotifier {
    /// Ends the notice; when this returns, nobody is being told and nobody will be.
    pub(in crate::verbs) fn end(&self) {
        self.device
            .state
            .lock()
            .notices
            .retain(|w| w.who != self.watcher.who);
    }
}

impl Drop for RemovalNotifier {
    fn drop(&mut self) {
        self.end();
    }
}

/// The registration of this module as a client of the RDMA core.
///
/// Dropping it takes every device back, so every transport must be gone by then or be told to go.
#[pin_data(PinnedDrop)]
pub(crate) struct IbClient {
    #[pin]
    client: Opaque<bindings::ib_client>,
}

// SAFETY: Registration and its end may happen on different threads.
unsafe impl Send for IbClient {}
// SAFETY: A shared reference offers nothing.
unsafe impl Sync for IbClient {}

impl IbClient {
    /// Registers; known devices are announced before this returns.
    pub(crate) fn register() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            client <- Opaque::try_ffi_init(|slot: *mut bindings::ib_client| {
                // SAFETY: There is one `IbClient`, made once, by the module's init; nothing uses
                // the lock before the registration below.
                unsafe { DEVICES.init() };
                // SAFETY: All zeroes is valid for `ib_client`, and `slot` is writable.
                unsafe {
                    slot.write_bytes(0, 1);
                    (*slot).name = c"rpcrdma".as_char_ptr();
                    (*slot).add = Some(add_one);
                    (*slot).remove = Some(remove_one);
                }
                // SAFETY: `slot` is initialised and pinned until the unregistration in drop.
                to_result(unsafe { bindings::ib_register_client(slot) })
            }),
        })
    }
}

#[pinned_drop]
impl PinnedDrop for IbClient {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `register`; the core calls `remove_one` for each device.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        // A static is never dropped; the list is empty, but still has its memory.
        *DEVICES.lock() = KVec::new();
    }
}

/// # Safety
///
/// Called by the RDMA core with a live device.
unsafe extern "C" fn add_one(raw: *mut bindings::ib_device) -> c_int {
    let Some(raw) = NonNull::new(raw) else {
        return EINVAL.to_errno();
    };
    let device = Arc::pin_init(
        pin_init!(Device {
            raw,
            state <- new_mutex!(
                State { removing: false, leases: 0, notices: KVVec::new() },
                "Device::state"
            ),
            returned <- new_condvar!("Device::returned"),
        }),
        GFP_KERNEL,
    );
    // INVARIANT: The core keeps the device until `remove_one` has returned, which takes it off the
    // list and waits for the leases.
    let added = device.and_then(|d| {
        trace!(rpcrdma_client_add_one(&d.name()));
        let _noio = NoIo::begin();
        let mut devices = DEVICES.lock();
        Ok(devices.push(d, GFP_KERNEL)?)
    });
    added.map_or_else(|e| e.to_errno(), |()| 0)
}

/// # Safety
///
/// Called by the RDMA core for a device that was announced with [`add_one`].
unsafe extern "C" fn remove_one(raw: *mut bindings::ib_device, _data: *mut c_void) {
    let found = {
        let mut devices = DEVICES.lock();
        let found = devices.iter().find(|d| d.raw.as_ptr() == raw).cloned();
        devices.retain(|d| d.raw.as_ptr() != raw);
        found
    };
    let Some(device) = found else {
        return;
    };
    trace!(rpcrdma_client_remove_one(&device.name()));
    let mut state = device.state.lock();
    state.removing = true;
    for watcher in state.notices.iter() {
        // SAFETY: The notice still stands, since dropping it takes the lock that we hold.
        unsafe { (watcher.tell)(watcher.who) };
    }
    if state.leases > 0 {
        trace!(rpcrdma_client_wait_on(&device.name()));
    }
    while state.leases > 0 {
        device.returned.wait(&mut state);
    }
    trace!(rpcrdma_client_remove_one_done(&device.name()));
}

impl DeviceAttrs {
    /// # Safety
    ///
    /// `device` must be valid for the call.
    pub(in crate::verbs) unsafe fn query(device: *mut bindings::ib_device, port: u32) -> Self {
        // SAFETY: By this function's contract; attributes do not change while a device is
        // registered.
        let a = unsafe { &(*device).attrs };
        // SAFETY: As above.
        let iwarp = unsafe { bindings::rpcrdma_protocol_iwarp(device, port) };
        // SAFETY: As above.
        let ib_or_roce = unsafe { bindings::rpcrdma_ib_or_roce(device, port) };
        // A count that is negative here was larger than the field can hold.
        let count = |v: c_int| u32::try_from(v).unwrap_or(i32::MAX.unsigned_abs());
        let has = |cap: u64| a.device_cap_flags & cap != 0;
        Self {
            max_qp_wr: count(a.max_qp_wr),
            max_cqe: count(a.max_cqe),
            max_send_sge: count(a.max_send_sge),
            max_sge_rd: count(a.max_sge_rd),
            max_fast_reg_pages: a.max_fast_reg_page_list_len,
            max_qp_rd_atom: count(a.max_qp_rd_atom),
            max_qp_init_rd_atom: count(a.max_qp_init_rd_atom),
            mem_mgt_extensions: has(
                bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64
            ),
            sg_gaps: a.kernel_cap_flags & u64::from(bindings::ib_kernel_cap_flags_IBK_SG_GAPS_REG)
                != 0,
            registers_to_read: iwarp,
            registers_all: rw_ctxt::core_registers_all(),
            supported: iwarp || ib_or_roce,
        }
    }
}
