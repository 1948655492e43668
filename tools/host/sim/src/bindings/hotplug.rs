// SPDX-License-Identifier: GPL-2.0

//! Devices that are removed, as by `ib_unregister_device()`, and come back; and addresses that move
//! to another device.

use core::cell::Cell;

use kernel::ffi::c_uint;
use kernel::sched;

use super::cm::*;
use super::fabric::*;
use super::*;

thread_local! {
    static USED: Cell<bool> = const { Cell::new(false) };
    static BUSY: Cell<bool> = const { Cell::new(false) };
    static OPENING: Cell<u32> = const { Cell::new(0) };
    /// The CM has left the server's device.
    static LEFT: Cell<bool> = const { Cell::new(false) };
}

/// Whether a device is being removed, or gone.
pub(crate) fn is_busy() -> bool {
    BUSY.get()
}

/// Whether a device was removed.
pub(crate) fn was_used() -> bool {
    USED.get()
}

/// Whether no connection request may arrive: the CM has left the server's device.
pub(super) fn has_cm_left() -> bool {
    LEFT.get()
}

/// Tells all connections on a device, or their listener.
fn tell(cm: &mut Cm, event: c_uint, is_told: impl Fn(&Id, *mut ib_device) -> bool) {
    let numbers: Vec<usize> = cm.ids.keys().copied().collect();
    for number in numbers {
        // SAFETY: The `cm_id` is in the list, so it is there.
        let device = unsafe { (*cm.raw(number)).device };
        if is_told(&cm.ids[&number], device) {
            cm.tell(number, event, 0, Param::default());
        }
    }
}

/// Has the device go when one in `n` connections is opened on it; none if `n` is 0.
pub(crate) fn unplug_opening(n: u32) {
    OPENING.set(n);
}

/// A connection is opened. It has a reference to the device already.
pub(super) fn opening(device: *mut ib_device) {
    if !is_busy() && sched::one_in(OPENING.get()) {
        unplug(usize::from(device != devices()[0]));
        let later = sched::now() + sched::below(3_000_000) as u64;
        while sched::wait_until(AWAY, later) {}
    }
}

/// Removes a device, which is back some time later.
pub(crate) fn unplug(which: usize) {
    if BUSY.replace(true) {
        return;
    }
    USED.set(true);
    ib_core::set_gone(which, true);
    sched::spawn("hotplug", move || {
        let device = devices()[which];
        let event = rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL;
        say!("device {which} is removed");
        if which == 0 && sched::below(2) == 0 {
            cm(|cm| tell(cm, event, |id, _| id.listens));
        }
        if sched::below(2) == 0 {
            cm(|cm| tell(cm, event, |_, on| on == device));
        }
        ib_core::disable(which);
        say!("device {which} is gone");
        // The CM goes next: no cm_id may stay on the device, and none may come.
        LEFT.set(LEFT.get() || which == 0);
        cm(|cm| tell(cm, event, |_, on| on == device));
        let most = sched::now() + 100_000_000_000;
        while cm(|cm| {
            // SAFETY: As above.
            let on = |number: &usize| unsafe { (*cm.raw(*number)).device } == device;
            cm.ids.keys().any(on)
        }) {
            if sched::now() > most {
                sched::fail("a cm_id stays on a device that is gone");
            }
            sched::wait_until(AWAY, sched::now() + 1_000_000);
        }
        ib_core::wait_unregistered(which);
        let later = sched::now() + sched::below(2_000_000_000) as u64;
        while sched::wait_until(AWAY, later) {}
        ib_core::set_gone(which, false);
        LEFT.set(LEFT.get() && which != 0);
        say!("device {which} is back");
        ib_core::enable(which);
        BUSY.set(false);
    });
}

/// A key that nothing wakes.
const AWAY: usize = 13;

/// The address of a `cm_id` has moved to another device.
pub(crate) fn move_address() {
    cm(|cm| {
        let numbers: Vec<usize> = cm.ids.keys().copied().collect();
        if numbers.is_empty() {
            return;
        }
        let number = numbers[sched::below(numbers.len())];
        say!("the address of cm_id {number} moves");
        let event = rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE;
        cm.tell(number, event, 0, Param::default());
    });
}
