// SPDX-License-Identifier: GPL-2.0

//! Registration with the RDMA core, and references to its devices.
//!
//! C: ib_client.c, rpcrdma_add_one(), rpcrdma_remove_one(), rpcrdma_rn_register()
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! When a device is removed, the module calls every [`RemovalNotifier`] of the device and then
//! waits for the last [`DeviceRef`]: no QP, MR or DMA mapping outlives its device.
//!
//! Lock order: `DEVICES`, then `Device::state`. Both are mutexes, and no data path takes them. A
//! transport that reconnects takes both. Allocations under either lock therefore must not start
//! I/O, which could depend on that transport.

use core::{
    ffi::{
        c_void,
        CStr, //
    },
    ops::Deref,
    pin::Pin,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::to_result,
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        atomic::ordering::Full,
        Arc,
        CondVar,
        Mutex, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    lib::{
        memalloc::NoIo,
        sync::Atomic, //
    },
    trace::trace, //
};

use super::local_inv::{
    ConnectionInvs,
    DeviceInvs, //
};

kernel::sync::global_lock! {
    // SAFETY: `IbClient::register` initialises it before the first device can be announced.
    unsafe(uninit) static DEVICES: Mutex<KVec<Arc<Device>>> = KVec::new();
}

/// There is or was an [`IbClient`].
static MADE: Atomic<bool> = Atomic::new(false);

/// A device between its `add` and the end of its `remove`.
///
/// # Invariants
///
/// - I1: `raw` is valid while the device is in `DEVICES` or has a [`DeviceRef`]: [`remove_one`]
///   takes it out of the list and waits for the references.
#[pin_data]
struct Device {
    raw: NonNull<bindings::ib_device>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    refs_gone: CondVar,
    invs: DeviceInvs,
}

// SAFETY: `raw` is passed to functions of the RDMA core only, which may be called from any thread,
// and I1 does not depend on the thread.
unsafe impl Send for Device {}
// SAFETY: As above; all other fields are `Sync`.
unsafe impl Sync for Device {}

impl Device {
    /// The device's name, for trace events. Called with the device in `DEVICES` or referenced.
    fn name(&self) -> DeviceName {
        // SAFETY: By I1.
        unsafe { DeviceName::of(self.raw) }
    }
}

/// A copy of a device's name. `rdma dev set NAME name ...` may change the original at any time.
pub(crate) struct DeviceName([u8; bindings::IB_DEVICE_NAME_MAX as usize]);

impl DeviceName {
    /// # Safety
    ///
    /// `device` is valid.
    unsafe fn of(device: NonNull<bindings::ib_device>) -> Self {
        let mut bytes = [0; bindings::IB_DEVICE_NAME_MAX as usize];
        // SAFETY: By this function's contract.
        let name = unsafe { &raw const (*device.as_ptr()).name };
        // The last byte stays zero, so a concurrent rename cannot leave the copy unterminated.
        for (at, byte) in bytes.iter_mut().enumerate().rev().skip(1) {
            // SAFETY: `at` is within the array. A volatile read of a byte tolerates the rename.
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
    refs: u32,
    /// One for each connection; a server may have thousands.
    watchers: KVVec<Watcher>,
}

/// An object that is told of a device's removal.
pub(in crate::verbs) trait RemovalWatcher: Sync {
    /// Called when the device's removal begins, with the device's lock held: must drop neither a
    /// [`DeviceRef`] nor a [`RemovalNotifier`].
    fn device_removed(&self);
}

/// A pointer to a watcher.
#[derive(Clone, Copy)]
struct Watcher(NonNull<dyn RemovalWatcher>);

// SAFETY: The watcher is `Sync`.
unsafe impl Send for Watcher {}
// SAFETY: As above.
unsafe impl Sync for Watcher {}

/// A counted reference to a device. Its removal waits for the last one.
pub(in crate::verbs) struct DeviceRef(Arc<Device>);

impl DeviceRef {
    /// Takes a reference.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the device is unknown or its removal has begun.
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
        state.refs = state.refs.checked_add(1).ok_or(EOVERFLOW)?;
        trace!(rpcrdma_client_register(&device.name(), state.refs));
        Ok(Self(device.clone()))
    }

    /// The device, valid for the lifetime of this reference.
    pub(in crate::verbs) fn device(&self) -> *mut bindings::ib_device {
        self.0.raw.as_ptr()
    }

    /// The device's name.
    pub(in crate::verbs) fn device_name(&self) -> DeviceName {
        self.0.name()
    }

    /// Notes that the device has accepted LOCAL_INVs of a connection.
    #[inline]
    pub(in crate::verbs) fn accepts_inv(&self, connection: &ConnectionInvs) {
        connection.accept(&self.0.invs);
    }

    /// Notes that the device has refused a LOCAL_INV of a connection, whose QP could send.
    pub(in crate::verbs) fn refuses_inv(&self, connection: &ConnectionInvs) {
        connection.refuse(&self.0.invs);
    }

    /// Returns whether the device refuses every LOCAL_INV, as far as is known.
    pub(super) fn refuses_all_invs(&self) -> bool {
        self.0.invs.refuses_all()
    }

    /// Has `watcher` told when the device's removal begins, until the returned notifier is ended.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the removal has begun, `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `watcher` stays until the notifier is [ended](RemovalNotifier::end), or dropped.
    pub(in crate::verbs) unsafe fn notify(
        &self,
        watcher: &(dyn RemovalWatcher + 'static),
    ) -> Result<RemovalNotifier> {
        let watcher = Watcher(NonNull::from(watcher));
        let mut state = self.0.state.lock();
        if state.removing {
            return Err(ENODEV);
        }
        let _noio = NoIo::begin();
        state.watchers.push(watcher, GFP_KERNEL)?;
        Ok(RemovalNotifier {
            device: self.0.clone(),
            watcher,
        })
    }
}

impl Drop for DeviceRef {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        trace!(rpcrdma_client_unregister(&self.0.name(), state.refs));
        state.refs -= 1;
        if state.refs == 0 {
            if state.removing {
                trace!(rpcrdma_client_completion(&self.0.name()));
            }
            self.0.refs_gone.notify_all();
        }
    }
}

/// A registered callback for the removal of a device.
#[must_use]
pub(in crate::verbs) struct RemovalNotifier {
    device: Arc<Device>,
    watcher: Watcher,
}

impl RemovalNotifier {
    /// Unregisters the callback. When this returns, the callback is not running and will not run.
    pub(in crate::verbs) fn end(&self) {
        self.device
            .state
            .lock()
            .watchers
            .retain(|w| !ptr::addr_eq(w.0.as_ptr(), self.watcher.0.as_ptr()));
    }
}

impl Drop for RemovalNotifier {
    fn drop(&mut self) {
        self.end();
    }
}

/// The registration of this module as a client of the RDMA core.
///
/// Dropping it calls [`remove_one`] for every device, which waits for the connections on it.
#[pin_data(PinnedDrop)]
pub(crate) struct IbClient {
    #[pin]
    client: Opaque<bindings::ib_client>,
}

// SAFETY: The RDMA core lets any thread unregister.
unsafe impl Send for IbClient {}
// SAFETY: A shared reference has no methods.
unsafe impl Sync for IbClient {}

impl IbClient {
    /// Registers with the core, which calls [`add_one`] for each device before this returns.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there was a registration already, or the core's error.
    pub(crate) fn register() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            client <- Opaque::try_ffi_init(|slot: *mut bindings::ib_client| {
                if MADE.xchg(true, Full) {
                    return Err(EBUSY);
                }
                // SAFETY: `MADE` was not set, so this runs once. Nothing takes the lock before the
                // registration below.
                unsafe { DEVICES.init() };
                // SAFETY: `slot` is valid for writes, and all zeroes is a valid `ib_client`.
                unsafe {
                    slot.write_bytes(0, 1);
                    (*slot).name = c"rpcrdma".to_bytes_with_nul().as_ptr();
                    (*slot).add = Some(add_one);
                    (*slot).remove = Some(remove_one);
                }
                // SAFETY: `slot` is initialised, and pinned until `drop` unregisters it.
                to_result(unsafe { bindings::ib_register_client(slot) })
            }),
        })
    }
}

#[pinned_drop]
impl PinnedDrop for IbClient {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `register` has registered it.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        // A static is never dropped: free the memory of the list, which is empty.
        *DEVICES.lock() = KVec::new();
    }
}

/// Adds a device.
///
/// # Safety
///
/// Only the RDMA core calls this, with a device that stays valid until [`remove_one`] returns.
unsafe extern "C" fn add_one(raw: *mut bindings::ib_device) -> c_int {
    let Some(raw) = NonNull::new(raw) else {
        return EINVAL.to_errno();
    };
    let device = Arc::pin_init(
        pin_init!(Device {
            raw,
            state <- new_mutex!(
                State { removing: false, refs: 0, watchers: KVVec::new() },
                "Device::state"
            ),
            refs_gone <- new_condvar!("Device::refs_gone"),
            invs: DeviceInvs::new(),
        }),
        GFP_KERNEL,
    );
    // INVARIANT: I1: by this function's contract, until `remove_one` returns, which keeps I1.
    let added = device.and_then(|d| {
        trace!(rpcrdma_client_add_one(&d.name()));
        let _noio = NoIo::begin();
        let mut devices = DEVICES.lock();
        Ok(devices.push(d, GFP_KERNEL)?)
    });
    added.map_or_else(
        |e| {
            // The core does not announce the device again.
            // SAFETY: By this function's contract.
            let name = unsafe { DeviceName::of(raw) };
            pr_err!(
                "out of memory: {} is not used until the module is loaded again\n",
                name.to_str().unwrap_or_default()
            );
            e.to_errno()
        },
        |()| 0,
    )
}

/// Tells the users of a device of its removal, and waits for them.
///
/// # Safety
///
/// Only the RDMA core calls this, for a device that it has passed to [`add_one`].
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
    for watcher in state.watchers.iter() {
        // SAFETY: The notifier has not been ended: `end` takes the lock, and removes the entry.
        unsafe { watcher.0.as_ref() }.device_removed();
    }
    if state.refs > 0 {
        trace!(rpcrdma_client_wait_on(&device.name()));
    }
    while state.refs > 0 {
        device.refs_gone.wait(&mut state);
    }
    trace!(rpcrdma_client_remove_one_done(&device.name()));
}
