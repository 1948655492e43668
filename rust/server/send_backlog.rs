// SPDX-License-Identifier: GPL-2.0

//! Messages and RDMA Reads that wait for room on the Send Queue.
//!
//! No thread waits for room, because the client controls when there is room. A chain that finds
//! none is queued here, and [the completion that makes room](super::post::post_waiting) posts it.
//! While chains wait, SUNRPC is told that there is no space to send, so that no thread takes
//! another Call of this connection. The queue therefore has at most the Reply or the Reads of each
//! Call that is in progress, and the backchannel Calls that the client has granted.
//!
//! C: svc_rdma_sendto.c, svc_rdma_sq_wait()

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::ordering::{
            Full,
            Relaxed, //
        },
        SpinLock, //
    }, //
};

use super::{
    call::Call,
    exposed::Exposing, //
};
use crate::{
    lib::{
        barrier::smp_mb,
        llist::Queue,
        llist_box::LlistBox,
        sync::Atomic, //
    },
    verbs::{
        CallRead,
        Permit,
        SendCtxt,
        SendQueue, //
    }, //
};

/// What is to be posted.
pub(super) enum Chain {
    /// The first `len` bytes of a message. The Send invalidates the client's handle `invalidate`.
    Send {
        ctxt: SendCtxt,
        len: usize,
        invalidate: Option<u32>,
    },
    /// As `Send`, for a Reply that the client is to read.
    Exposing {
        exposing: Exposing,
        len: usize,
        invalidate: Option<u32>,
    },
    /// The RDMA Reads of a Call.
    Read(CallRead<Call>),
}

impl Chain {
    /// The number in traces.
    pub(super) fn serial(&self) -> i32 {
        match self {
            Self::Send { ctxt, .. } => ctxt.serial(),
            Self::Exposing { exposing, .. } => exposing.ctxt.serial(),
            Self::Read(read) => read.serial(),
        }
    }
}

struct Waiting {
    chain: Chain,
    /// Entries that it reserves.
    entries: u32,
}

/// A chain that is to be posted now.
pub(super) struct Next<'a> {
    pub(super) permit: Permit<'a>,
    pub(super) chain: Chain,
    /// No other chain waits.
    pub(super) is_last: bool,
}

/// The chains of one connection that wait for room on its Send Queue.
///
/// No chain is forgotten: [`Self::push`] increments `count` before the Send Queue is tried again,
/// and a completion releases its entries before it reads `count`, each with a full barrier between.
/// Nor is a Call that arrives meanwhile: see [`Self::is_empty_now`].
#[pin_data]
pub(super) struct SendBacklog {
    /// The number of chains. Written under the lock of `waiting`.
    count: Atomic<u32>,
    /// The number of chains that may wait.
    max: Atomic<u32>,
    #[pin]
    waiting: SpinLock<Queue<LlistBox<Waiting>>>,
}

impl SendBacklog {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count: Atomic::new(0),
            max: Atomic::new(0),
            waiting <- new_spinlock!(Queue::new(), "SendBacklog::waiting"),
        })
    }

    /// Sets the number of chains that may wait, before there are any.
    pub(super) fn open(&self, max: u32) {
        self.max.store(max, Relaxed);
    }

    /// Whether no chain waits. A chain must not overtake those that wait.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// Whether no chain waits, for SUNRPC, which asks whether a thread may take the next Call.
    ///
    /// A thread clears `XPT_BUSY` and then reads `count`, while a completion decrements `count` and
    /// then reads `XPT_BUSY`. The reader that finds the change of the other enqueues the transport,
    /// so there must be a full barrier at either side. The completion's is in [`Self::next`].
    /// `svc_xprt_received()` has none behind the flag, so the barrier is here. It is not needed if
    /// `count` is zero already.
    #[inline]
    pub(super) fn is_empty_now(&self) -> bool {
        self.is_empty() || self.is_empty_behind_barrier()
    }

    #[cold]
    fn is_empty_behind_barrier(&self) -> bool {
        smp_mb();
        self.is_empty()
    }

    /// The number of chains that wait.
    pub(super) fn len(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// Reserves `entries` of `queue`, if no chain waits and there is room. If not, the caller must
    /// [queue](Self::push) the chain.
    #[inline]
    pub(super) fn reserve<'a>(&self, queue: &'a SendQueue, entries: u32) -> Option<Permit<'a>> {
        if self.is_empty() {
            queue.try_reserve(entries)
        } else {
            None
        }
    }

    /// Queues a chain until `entries` are free. The caller must then call [`Self::next`] until it
    /// returns `None`: there may be room by now.
    ///
    /// # Errors
    ///
    /// The chain, if no memory is left or too many chains wait already.
    pub(super) fn push(&self, chain: Chain, entries: u32) -> Result<(), Chain> {
        let Ok(memory) = LlistBox::new_uninit(GFP_KERNEL) else {
            return Err(chain);
        };
        let mut waiting = self.waiting.lock();
        if self.count.load(Relaxed) >= self.max.load(Relaxed) {
            return Err(chain);
        }
        waiting.push(memory.write(Waiting { chain, entries }));
        // Full, for `next` and `complete`: see above.
        self.count.fetch_add(1, Full);
        Ok(())
    }

    /// Removes the oldest chain, if `queue` has room for it.
    pub(super) fn next<'a>(&self, queue: &'a SendQueue) -> Option<Next<'a>> {
        let (permit, first, left) = {
            let mut waiting = self.waiting.lock();
            let permit = queue.try_reserve(waiting.front_mut()?.entries)?;
            let first = waiting.pop()?;
            // Full: the caller makes SUNRPC read `XPT_BUSY` next, see `is_empty_now`, and
            // `XPT_DATA`, which is set before `count` is read.
            (permit, first, self.count.fetch_sub(1, Full))
        };
        Some(Next {
            permit,
            chain: first.into_inner().chain,
            is_last: left == 1,
        })
    }

    /// Removes the oldest chain, which is not to be posted.
    pub(super) fn remove(&self) -> Option<Chain> {
        let first = {
            let mut waiting = self.waiting.lock();
            let first = waiting.pop()?;
            self.count.fetch_sub(1, Full);
            first
        };
        Some(first.into_inner().chain)
    }
}
