// SPDX-License-Identifier: GPL-2.0

//! Credits of Calls that nobody waits for any more.
//!
//! SUNRPC gives the credit of a Call back when it lets go of the RPC. If that was given up while
//! the Call was on the wire, the peer still has the Call, and may answer it: it is outstanding
//! until it is answered, or the connection ends, and no other may go out in its place (RFC 8166
//! Section 3.3.1). Such a credit is kept here.
//!
//! SUNRPC takes the Call out of its queue first, and lets us keep the credit later. An answer
//! between the two finds neither: so answers that belong to nobody are remembered for a while.
//!
//! A peer that never answers would keep it for good. It is treated as if somebody still waited:
//! when the Reply is overdue, the connection is given up.

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
    class::RPC_TIMEOUT_MS,
    locks, //
};

/// How long at least a Reply may take that nobody waits for. Some may take longer, which is up to
/// who mounts.
const GIVE_UP_TIMEOUT_MS: u32 = RPC_TIMEOUT_MS;

/// What has a window of credits, and keeps some of them.
///
/// # Safety
///
/// What `raw` returns is a transport whose memory stays for as long as `self` does.
pub(crate) unsafe trait Windowed: Send + Sync + 'static {
    /// The transport.
    fn raw(&self) -> *mut bindings::rpc_xprt;

    /// Ends the connection: its peer does not answer.
    fn give_up(&self);
}

/// A Call that was given up.
struct Unanswered {
    xid: u32,
    /// When its Reply is overdue, in jiffies.
    due: c_ulong,
}

impl Unanswered {
    /// How long that is from `now`; 0 if it was before.
    fn left(&self, now: c_ulong) -> c_ulong {
        let left = self.due.wrapping_sub(now).cast_signed();
        left.max(0).cast_unsigned()
    }
}

/// How many stray answers are remembered. There are never more in question than processors between
/// the two steps.
const STRAYS: usize = 16;

/// Calls that were given up, and answers that belonged to none of them.
struct Books {
    unanswered: KVVec<Unanswered>,
    /// The last ones, in turn.
    strays: [Option<u32>; STRAYS],
    next: usize,
}

impl Books {
    fn is_unanswered(&self, xid: u32) -> bool {
        self.unanswered.iter().any(|call| call.xid == xid)
    }

    fn remember(&mut self, xid: u32) {
        if let Some(place) = self.strays.get_mut(self.next) {
            *place = Some(xid);
        }
        self.next = (self.next + 1) % STRAYS;
    }

    /// Whether `xid` is remembered, which it is no longer.
    fn recall(&mut self, xid: u32) -> bool {
        let place = self.strays.iter_mut().find(|stray| **stray == Some(xid));
        place.and_then(Option::take).is_some()
    }
}

/// What SUNRPC asks for when a credit is to be given back.
#[repr(C)]
struct StandIn {
    task: bindings::rpc_task,
    rqst: bindings::rpc_rqst,
}

/// See the [module's](self) description.
///
/// Lock order: SUNRPC's `transport_lock`, then `books`.
#[pin_data]
pub(crate) struct Credits<W: Windowed> {
    xprt: W,
    #[pin]
    books: SpinLock<Books>,
    /// Used with `transport_lock` held.
    #[pin]
    stand_in: Opaque<StandIn>,
    #[pin]
    overdue: RawDelayedWork,
}

// SAFETY: The stand-in is `transport_lock`'s.
unsafe impl<W: Windowed> Send for Credits<W> {}
// SAFETY: As above.
unsafe impl<W: Windowed> Sync for Credits<W> {}

impl<W: Windowed> Credits<W> {
    /// For a transport with so many slots: no more Calls can be outstanding.
    pub(super) fn new(xprt: W, slots: u32) -> Result<Arc<Self>> {
        let books = Books {
            unanswered: KVVec::with_capacity(slots as usize, GFP_KERNEL)?,
            strays: [None; STRAYS],
            next: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                xprt,
                books <- new_spinlock!(books, "Credits::books"),
                stand_in: Opaque::zeroed(),
                overdue <- RawDelayedWork::new(overdue::<W>, kernel::static_lock_class!()),
            }),
            GFP_KERNEL,
        )
    }

    /// Keeps the credit of a Call that was sent, and is given up; `false` if it has been answered
    /// in the meantime, or there is no room for it. `timeout` is for how many jiffies its task
    /// would have waited for the Reply.
    ///
    /// # Safety
    ///
    /// `transport_lock` is held, and [`Self::stop`] not called yet. If this returns `true`, the
    /// caller leaves `cong` as it is.
    #[cold]
    #[must_use = "the credit is the caller's to give back if this is false"]
    pub(super) unsafe fn keep(&self, xid: u32, timeout: c_ulong) -> bool {
        let patience = msecs_to_jiffies(GIVE_UP_TIMEOUT_MS);
        // SAFETY: Reading the clock needs nothing.
        let now = unsafe { bindings::rpcrdma_jiffies() };
        let due = now.wrapping_add(timeout.max(patience));
        let mut books = self.books.lock();
        let call = Unanswered { xid, due };
        let kept = !books.recall(xid) && books.unanswered.push_within_capacity(call).is_ok();
        drop(books);
        if kept {
            // SAFETY: By this function's contract, `stop` cancels it before it ends.
            unsafe { self.overdue.queue(patience) };
        }
        kept
    }

    /// An answer that nobody waits for: whether `xid` is that of a Call that was given up. If so,
    /// it has to be [given back](Self::give_back).
    #[cold]
    pub(crate) fn answered(&self, xid: u32) -> bool {
        let mut books = self.books.lock();
        let kept = books.is_unanswered(xid);
        if !kept {
            books.remember(xid);
        }
        kept
    }

    /// The peer has answered: the credit is free for another Call.
    #[cold]
    pub(crate) fn give_back(&self, xid: u32) {
        let raw = self.xprt.raw();
        // SAFETY: The memory is there, by the contract of `Windowed`.
        let _locked = unsafe { locks::transport(raw) };
        if !self.forget(xid) {
            return;
        }
        let stand_in = self.stand_in.get();
        // SAFETY: Ours, with `transport_lock` held.
        unsafe {
            (*stand_in).task.tk_rqstp = &raw mut (*stand_in).rqst;
            (*stand_in).rqst.rq_xprt = raw;
            (*stand_in).rqst.rq_cong = 1;
        }
        // SAFETY: The lock that SUNRPC asks for is held. It looks at the task's request, its
        // transport and its credit, and at no more.
        unsafe { bindings::xprt_release_rqst_cong(&raw mut (*stand_in).task) };
    }

    fn forget(&self, xid: u32) -> bool {
        let unanswered = &mut self.books.lock().unanswered;
        let index = unanswered.iter().position(|call| call.xid == xid);
        // Order is of no meaning.
        index.is_some_and(|index| {
            let last = unanswered.len() - 1;
            unanswered.swap(index, last);
            unanswered.pop().is_some()
        })
    }

    /// The connection has ended, and all credits with it.
    pub(super) fn clear(&self) {
        let mut books = self.books.lock();
        books.unanswered.clear();
        books.strays = [None; STRAYS];
    }

    /// The transport is to be destroyed.
    pub(super) fn stop(&self) {
        self.overdue.cancel_sync();
    }
}

/// # Safety
///
/// Called by the workqueue for the work item of a `Credits<W>`, which waits for this.
unsafe extern "C" fn overdue<W: Windowed>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract.
    let this =
        unsafe { &*kernel::container_of!(RawDelayedWork::from_work(work), Credits<W>, overdue) };
    // SAFETY: Reading the clock needs nothing.
    let now = unsafe { bindings::rpcrdma_jiffies() };
    let left = |call: &Unanswered| call.left(now);
    let Some(soonest) = Iterator::min(this.books.lock().unanswered.iter().map(left)) else {
        return;
    };
    if soonest == 0 {
        this.xprt.give_up();
    } else {
        // Sooner than whoever has kept one meanwhile said, but not so late that one which is kept
        // from now on may be overdue by then.
        let next = soonest.min(msecs_to_jiffies(GIVE_UP_TIMEOUT_MS));
        // SAFETY: `stop` waits for this, and cancels it.
        unsafe { this.overdue.modify(next) };
    }
}
