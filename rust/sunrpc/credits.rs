// SPDX-License-Identifier: GPL-2.0

//! Credits of Calls whose RPC ended before the peer replied.
//!
//! SUNRPC releases the credit of a Call when it releases the RPC. If a signal or a timeout ended
//! the RPC while the Call was on the wire, the peer still processes the Call and may reply to it.
//! The Call counts as outstanding until the peer replies or the connection ends, and no other Call
//! may use its credit (RFC 8166 Section 3.3.1, RFC 8167 Section 4.1). This file holds such credits.
//!
//! SUNRPC first removes the request from its receive queue, and calls `release_request`, which
//! holds the credit, later. A Reply that arrives between the two matches neither. The XIDs of
//! Replies without a match are therefore remembered for a while.
//!
//! A peer that never replies keeps the credit, as it would if the task still waited. That harms no
//! other RPC while credits are left, and the end of the connection would harm them all. Therefore
//! the connection is closed only if the overdue Calls hold more than half of the window.
//!
//! The C module has no counterpart: it releases the credit with the RPC, and may then exceed the
//! peer's grant.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    time::msecs_to_jiffies,
    types::Opaque, //
};

use crate::{
    bindings,
    lib::delayed_work::RawDelayedWork, //
};

use super::{
    c_ref::read_once,
    class::RPC_TIMEOUT_MS,
    locked_rqst::Releasing,
    time::jiffies,
    xprt_ref::XprtRef, //
};

/// The least time that the peer has to reply to a Call whose RPC ended. A mount may set a longer
/// RPC timeout, which then applies.
const REPLY_TIMEOUT_MS: u32 = RPC_TIMEOUT_MS;

/// A transport with a congestion window, whose [`Credits`] hold some of the credits.
pub(crate) trait CreditXprt: Send + Sync + 'static {
    /// The transport.
    fn xprt(&self) -> XprtRef<'_>;

    /// Closes the connection, because Calls without a Reply hold too many credits.
    fn disconnect(&self);
}

/// A Call whose credit is held.
struct HeldCall {
    xid: u32,
    /// When the Reply is overdue, in jiffies.
    deadline: c_ulong,
}

impl HeldCall {
    /// The jiffies from `now` to the deadline; 0 if it has passed.
    fn remaining(&self, now: c_ulong) -> c_ulong {
        let remaining = self.deadline.wrapping_sub(now) as c_long;
        remaining.max(0) as c_ulong
    }
}

/// How many XIDs of unmatched Replies are remembered. Few requests are between SUNRPC's two steps
/// at a time. If more Replies come, a credit is held although its Reply has arrived.
const UNMATCHED: usize = 16;

/// Held credits, and the Replies that matched none.
struct Held {
    calls: KVVec<HeldCall>,
    /// The XIDs of the latest unmatched Replies; a ring.
    unmatched: [Option<u32>; UNMATCHED],
    next: usize,
}

impl Held {
    fn contains(&self, xid: u32) -> bool {
        self.calls.iter().any(|call| call.xid == xid)
    }

    fn remember_unmatched(&mut self, xid: u32) {
        if let Some(entry) = self.unmatched.get_mut(self.next) {
            *entry = Some(xid);
        }
        self.next = (self.next + 1) % UNMATCHED;
    }

    /// Removes `xid` from the unmatched Replies; `false` if it is not one of them.
    fn take_unmatched(&mut self, xid: u32) -> bool {
        let entry = self.unmatched.iter_mut().find(|entry| **entry == Some(xid));
        entry.and_then(Option::take).is_some()
    }
}

/// The arguments of `xprt_release_rqst_cong()`: a task with a request that has a credit.
#[repr(C)]
struct CongTask {
    task: bindings::rpc_task,
    rqst: bindings::rpc_rqst,
}

/// The held credits of one transport. See the [module documentation](self).
///
/// Lock order: SUNRPC's `transport_lock`, then `held`.
///
/// # Invariants
///
/// - I1: `cong_task` is accessed only with the `transport_lock` of `xprt` held.
#[pin_data]
pub(crate) struct Credits<X: CreditXprt> {
    xprt: X,
    #[pin]
    held: SpinLock<Held>,
    #[pin]
    cong_task: Opaque<CongTask>,
    #[pin]
    timer: RawDelayedWork,
}

// SAFETY: `cong_task` owns nothing that is bound to a thread; all other fields are `Send`.
unsafe impl<X: CreditXprt> Send for Credits<X> {}
// SAFETY: By I1 access to `cong_task` is serialised; all other fields are `Sync`.
unsafe impl<X: CreditXprt> Sync for Credits<X> {}

impl<X: CreditXprt> Credits<X> {
    /// Credits of a transport with `slots` slots, which limit the outstanding Calls.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(xprt: X, slots: u32) -> Result<Arc<Self>> {
        let held = Held {
            calls: KVVec::with_capacity(slots as usize, GFP_KERNEL)?,
            unmatched: [None; UNMATCHED],
            next: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                xprt,
                held <- new_spinlock!(held, "Credits::held"),
                cong_task: Opaque::zeroed(),
                timer <- RawDelayedWork::new(timeout::<X>, kernel::static_lock_class!()),
            }),
            GFP_KERNEL,
        )
    }

    /// The transport.
    pub(super) fn xprt(&self) -> XprtRef<'_> {
        self.xprt.xprt()
    }

    /// Closes the connection.
    pub(super) fn disconnect(&self) {
        self.xprt.disconnect();
    }

    /// `release_request`: releases the credit of a request of this transport. If the Call
    /// `is_outstanding`, holds the credit instead, unless the peer has replied in the meantime, or
    /// no entry is left.
    ///
    /// # Safety
    ///
    /// [`Self::stop`] is called later, before the transport drops these credits.
    #[inline]
    pub(super) unsafe fn release_request(&self, rqst: Releasing<'_>, is_outstanding: bool) {
        let timeout = || read_once!(rqst.fields(), rq_timeout);
        // SAFETY: By this function's contract.
        if rqst.has_credit() && is_outstanding && unsafe { self.hold(rqst.xid(), timeout()) } {
            rqst.forget_credit();
        } else {
            rqst.release_credit();
        }
    }

    /// Holds the credit of a Call whose task would have waited for `timeout` jiffies; `false` if
    /// the peer has replied in the meantime, or no entry is left.
    ///
    /// # Safety
    ///
    /// [`Self::stop`] is called later, before the transport drops these credits.
    #[cold]
    unsafe fn hold(&self, xid: u32, timeout: c_ulong) -> bool {
        let least = msecs_to_jiffies(REPLY_TIMEOUT_MS);
        let deadline = jiffies().wrapping_add(timeout.max(least));
        let mut held = self.held.lock();
        let call = HeldCall { xid, deadline };
        let is_held = !held.take_unmatched(xid) && held.calls.push_within_capacity(call).is_ok();
        drop(held);
        if is_held {
            // SAFETY: By this function's contract `stop` cancels the work before it is freed.
            unsafe { self.timer.queue(least) };
        }
        is_held
    }

    /// Whether the credit of the Call `xid` is held, for a Reply that matches no request. The
    /// caller then [releases](Self::release) the credit.
    #[cold]
    pub(crate) fn is_held(&self, xid: u32) -> bool {
        let mut held = self.held.lock();
        let is_held = held.contains(xid);
        if !is_held {
            held.remember_unmatched(xid);
        }
        is_held
    }

    /// Releases the credit of the Call `xid`, to which the peer has replied.
    #[cold]
    pub(crate) fn release(&self, xid: u32) {
        let xprt = self.xprt.xprt();
        let _locked = xprt.lock();
        if !self.remove(xid) {
            return;
        }
        let cong_task = self.cong_task.get();
        // SAFETY: By I1, with `transport_lock` held, no other thread accesses `cong_task`. The
        // function requires that lock. It reads `tk_rqstp` of the task and `rq_xprt` and `rq_cong`
        // of the request, which are set.
        unsafe {
            (*cong_task).task.tk_rqstp = &raw mut (*cong_task).rqst;
            (*cong_task).rqst.rq_xprt = xprt.raw();
            (*cong_task).rqst.rq_cong = 1;
            bindings::xprt_release_rqst_cong(&raw mut (*cong_task).task);
        }
    }

    fn remove(&self, xid: u32) -> bool {
        let calls = &mut self.held.lock().calls;
        let index = calls.iter().position(|call| call.xid == xid);
        // The order of the entries does not matter.
        index.is_some_and(|index| {
            let last = calls.len() - 1;
            calls.swap(index, last);
            calls.pop().is_some()
        })
    }

    /// How many Calls hold a credit although their Replies are overdue.
    pub(super) fn overdue(&self) -> usize {
        let now = jiffies();
        let held = self.held.lock();
        let overdue = held.calls.iter().filter(|call| call.remaining(now) == 0);
        overdue.count()
    }

    /// Forgets all held credits, because the connection has ended.
    pub(super) fn clear(&self) {
        let mut held = self.held.lock();
        held.calls.clear();
        held.unmatched = [None; UNMATCHED];
    }

    /// Cancels the timer, before the transport is destroyed. Sleeps.
    pub(super) fn stop(&self) {
        self.timer.cancel_sync();
    }
}

/// The timer's function: closes the connection if overdue Calls hold more than half of the window.
///
/// # Safety
///
/// The workqueue calls this for the `timer` of a `Credits<X>`, which is not freed meanwhile.
unsafe extern "C" fn timeout<X: CreditXprt>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract `work` is in the `timer` of a `Credits<X>` that stays for
    // this call.
    let this =
        unsafe { &*kernel::container_of!(RawDelayedWork::from_work(work), Credits<X>, timer) };
    let now = jiffies();
    let least = msecs_to_jiffies(REPLY_TIMEOUT_MS);
    let mut overdue = 0;
    // A `hold` that runs from now on finds the work queued, and its call may have the least
    // timeout. The timer must fire no later than that.
    let mut next = least;
    {
        let held = this.held.lock();
        if held.calls.is_empty() {
            return;
        }
        for call in held.calls.iter() {
            match call.remaining(now) {
                0 => overdue += 1,
                remaining => next = next.min(remaining),
            }
        }
    }
    let window = this.xprt.xprt().lock().window();
    if 2 * overdue > window {
        this.xprt.disconnect();
    } else {
        // A server may shrink the window, so calls that are overdue are looked at again.
        // SAFETY: By the contract of `hold`, which queued the work, `stop` cancels it.
        unsafe { this.timer.modify(next) };
    }
}
