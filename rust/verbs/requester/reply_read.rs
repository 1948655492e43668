// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads that fetch an exposed Reply into the memory that its consumer has provided.
//!
//! A Reply owns that memory. It moves: [`ReplyReads::start`] -> the device, or the Replies that
//! wait for room on the Send Queue -> [`ReplyReader::read_done`], once the memory is unmapped. In
//! between, no code can access or release the memory.
//!
//! Not in the C module: this is the extension "pulled Replies".

use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

use crate::{
    bindings,
    lib::{
        bvec::{
            BVec,
            BVecs,
            PAGE, //
        },
        gfp::Gfp,
        llist::{
            Queue,
            Stack, //
        },
        llist_box::LlistBox, //
    },
    verbs::{
        device::dma_buf::Direction,
        endpoint::{
            bad_wr::BadWr,
            completion::{
                handler,
                OnCompletion,
                SendCq,
                SendWorker,
                WcStatus, //
            },
            ep::{
                Drained,
                Endpoint, //
            },
            in_doubt::InDoubt,
            ops::{
                EndpointOps,
                SendSide, //
            },
            send_queue::{
                Permit,
                SendQueue, //
            }, //
        },
        rw::{
            remote::Remote,
            rw_chain::RwChain,
            rw_ctxt::{
                DoneArg,
                RwCtxt,
                RwCtxtPool, //
            }, //
        }, //
    }, //
};

/// The Reads are prepared in the receive worker. The worker must not wait for memory: this Reply
/// may be what lets memory be freed.
const GFP: Gfp = Gfp::NoWait;

/// A Reply that is to be read from the peer's memory. Owns the memory that the Reads write to.
pub(crate) trait ReadTarget: Send + 'static {
    /// The memory.
    fn room(&self) -> impl Iterator<Item = BVec<'_>>;

    /// The peer's memory, in order, with the number of bytes to read from each address.
    fn sources(&self) -> impl Iterator<Item = (Remote, u32)>;
}

/// A context that reads Replies.
pub(crate) trait ReplyReader:
    EndpointOps<SendSide = ReplyReads<<Self as ReplyReader>::ReplyRead>>
{
    /// A Reply that is to be read.
    type ReplyRead: ReadTarget;

    /// Handles a Reply whose Reads have completed. The send CQ's worker.
    fn read_done(worker: &SendWorker<'_, Self>, reply: Self::ReplyRead, status: WcStatus);
}

/// Why a Reply is not read.
pub(crate) enum ReadNotPosted<R> {
    /// Its memory is too short, or has too many pieces for the Send Queue.
    Unsuitable(R),
    /// The connection has to be closed: the post failed, or there is no memory for the Reads.
    Failed,
}

/// A Reply, and the Reads of it.
///
/// # Invariants
///
/// - I1: `rw_chain` writes to memory of `reply` only. `reply` neither changes nor is dropped before
///   the chain is released; a chain that cannot be released stays mapped for good, and is not
///   posted.
struct Reading<R> {
    // Dropped in this order.
    rw_chain: RwChain,
    reply: R,
}

impl<R: ReadTarget> Reading<R> {
    /// Prepares the Reads.
    ///
    /// # Errors
    ///
    /// [`ReadNotPosted`].
    fn prepare<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &RwCtxtPool,
    ) -> Result<(), ReadNotPosted<()>> {
        let mut cutter = Cutter {
            bvecs: self.reply.room(),
            rest: None,
        };
        let pieces = self.reply.room().count();
        for (mut remote, mut left) in self.reply.sources() {
            while left > 0 {
                // Without a gap, all but the first and the last are whole pages.
                let count = pieces.min((left / PAGE) as usize + 2);
                let run = cutter.run(left);
                // SAFETY: The runs are borrowed from `reply`, which is kept beside the chain (I1).
                let added = unsafe { self.rw_chain.add_bvecs(ep, pool, count, run, remote, GFP) };
                match added {
                    Ok(0) => return Err(ReadNotPosted::Unsuitable(())),
                    Ok(bytes) => {
                        left = left.saturating_sub(bytes);
                        // The address is the peer's: a wrong one fails at the peer.
                        remote.offset = remote.offset.wrapping_add(u64::from(bytes));
                    }
                    Err(_) => return Err(ReadNotPosted::Failed),
                }
            }
        }
        Ok(())
    }

    /// Unmaps the memory, and returns the Reply.
    ///
    /// `None` if the Reads are another endpoint's: memory that is mapped must not be released, so
    /// both are leaked.
    fn finish<C: EndpointOps>(mut self, ep: &Endpoint<C>, pool: &RwCtxtPool) -> Option<R> {
        if self.rw_chain.release(ep, pool) {
            Some(self.reply)
        } else {
            mem::forget(self);
            None
        }
    }
}

/// The Reads of Replies on one connection.
#[pin_data]
pub(crate) struct ReplyReads<R> {
    send_queue: SendQueue,
    #[pin]
    idle: RwCtxtPool,
    /// Replies whose Reads wait for room on the Send Queue, in order.
    #[pin]
    waiting: SpinLock<Queue<LlistBox<Reading<R>>>>,
    /// Chains that were posted in part. Which part is not known until the QP is drained.
    stranded: Stack<LlistBox<Reading<R>>>,
    /// Chains that may have been posted.
    #[pin]
    in_doubt: InDoubt<Reading<R>>,
}

impl<C: ReplyReader> Endpoint<C> {
    /// The Reads of Replies.
    #[inline]
    pub(crate) fn reply_reads(&self) -> &ReplyReads<C::ReplyRead> {
        self.send_side()
    }

    /// Reads a Reply, at once or when the Send Queue has room. [`ReplyReader::read_done`] follows.
    /// Does not wait for memory.
    ///
    /// # Errors
    ///
    /// [`ReadNotPosted`]; a Reply that is not returned is dropped.
    pub(crate) fn read_reply(
        &self,
        reply: C::ReplyRead,
    ) -> Result<(), ReadNotPosted<C::ReplyRead>> {
        self.reply_reads().start(self, reply)
    }
}

impl<R: ReadTarget> SendSide for ReplyReads<R> {
    /// Creates them without room on the Send Queue: see [`Self::open`].
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            send_queue: SendQueue::new(),
            idle <- RwCtxtPool::new(),
            waiting <- new_spinlock!(Queue::new(), "ReplyReads::waiting"),
            stranded: Stack::new(),
            in_doubt <- InDoubt::new(),
        })
    }
}

// The functions with an endpoint are called with the one that has `self`.
impl<R: ReadTarget> ReplyReads<R> {
    /// Reserves `entries` of the Send Queue, once.
    pub(crate) fn open(&self, entries: u32) {
        self.send_queue.open(entries, entries);
    }

    /// [`Endpoint::read_reply`].
    fn start<C: ReplyReader<ReplyRead = R>>(
        &self,
        ep: &Endpoint<C>,
        reply: R,
    ) -> Result<(), ReadNotPosted<R>> {
        // First, with plain flags: if this fails, the reserves are left alone (see
        // [`Gfp::scope`]).
        let Ok(memory) = LlistBox::new_uninit(GFP.flags()) else {
            return Err(ReadNotPosted::Failed);
        };
        // INVARIANT: I1: the chain is empty.
        let mut reading = Reading {
            rw_chain: RwChain::new(Direction::FromDevice),
            reply,
        };
        let prepared = reading.prepare(ep, &self.idle);
        let fits = reading.rw_chain.entries() <= self.send_queue.depth();
        match prepared {
            Ok(()) if fits => self.post_or_wait(ep, memory.write(reading)),
            Ok(()) | Err(ReadNotPosted::Unsuitable(())) => match reading.finish(ep, &self.idle) {
                Some(reply) => Err(ReadNotPosted::Unsuitable(reply)),
                None => Err(ReadNotPosted::Failed),
            },
            Err(ReadNotPosted::Failed) => {
                drop(reading.finish(ep, &self.idle));
                Err(ReadNotPosted::Failed)
            }
        }
    }

    fn post_or_wait<C: ReplyReader<ReplyRead = R>>(
        &self,
        ep: &Endpoint<C>,
        reading: LlistBox<Reading<R>>,
    ) -> Result<(), ReadNotPosted<R>> {
        let mut waiting = self.waiting.lock();
        let permit = match waiting.front_mut() {
            Some(_) => None,
            None => self.send_queue.try_reserve(reading.rw_chain.entries()),
        };
        match permit {
            Some(permit) => {
                drop(waiting);
                self.post(ep, reading, permit)
            }
            None => {
                waiting.push(reading);
                Ok(())
            }
        }
    }

    /// Posts the Reads of Replies that wait, as far as the Send Queue has room.
    fn next<C: ReplyReader<ReplyRead = R>>(
        &self,
        ep: &Endpoint<C>,
    ) -> Result<(), ReadNotPosted<R>> {
        while let Some((reading, permit)) = self.next_with_room() {
            self.post(ep, reading, permit)?;
        }
        Ok(())
    }

    /// Removes the first Reply that waits, if the Send Queue has room for its Reads.
    fn next_with_room(&self) -> Option<(LlistBox<Reading<R>>, Permit<'_>)> {
        let mut waiting = self.waiting.lock();
        let entries = waiting.front_mut()?.rw_chain.entries();
        let permit = self.send_queue.try_reserve(entries)?;
        Some((waiting.pop()?, permit))
    }

    fn post<C: ReplyReader<ReplyRead = R>>(
        &self,
        ep: &Endpoint<C>,
        mut reading: LlistBox<Reading<R>>,
        permit: Permit<'_>,
    ) -> Result<(), ReadNotPosted<R>> {
        let arg = DoneArg {
            context: reading.as_non_null().cast(),
            entries: permit.entries(),
            posted: None,
        };
        let rw_chain = &mut reading.rw_chain;
        rw_chain.set_done(handler::<C, Reading<R>>(), arg);
        // SAFETY: Nothing follows the chain.
        let first = unsafe { rw_chain.link(ep, ptr::null_mut()) };
        let Some(first) = first.filter(|first| !first.is_null()) else {
            drop(reading.into_inner().finish(ep, &self.idle));
            return Err(ReadNotPosted::Failed);
        };
        let raw = reading.into_raw();
        // SAFETY: The chain is well formed, and prepared for this endpoint's QP. Work requests and
        // memory belong to the `Reading`, which was given up above: it stays until `completed`
        // takes it back, or the code below.
        let Err((_, left)) = (unsafe { permit.post(ep, &self.send_queue, first) }) else {
            return Ok(());
        };
        if left == BadWr::Unknown {
            if let Some(reading) = NonNull::new(raw) {
                self.in_doubt.add(reading);
            }
            return Err(ReadNotPosted::Failed);
        }
        // SAFETY: The last Read was not posted, so that `completed` is not called.
        let reading = unsafe { LlistBox::from_raw(raw) };
        if left == BadWr::First {
            drop(reading.into_inner().finish(ep, &self.idle));
        } else {
            self.stranded.push(reading);
        }
        Err(ReadNotPosted::Failed)
    }

    /// Drops the Replies that wait for room.
    #[cold]
    fn give_up_waiting<C: EndpointOps>(&self, ep: &Endpoint<C>) {
        let mut waiting = mem::replace(&mut *self.waiting.lock(), Queue::new());
        while let Some(reading) = waiting.pop() {
            drop(reading.into_inner().finish(ep, &self.idle));
        }
    }
}

impl<C: ReplyReader> Drained<'_, C> {
    /// Drops the Replies that were not read.
    pub(crate) fn drop_reply_reads(&self) {
        let reply_reads = self.reply_reads();
        if reply_reads.send_queue.none_in_doubt_was_posted() {
            while let Some(reading) = reply_reads.in_doubt.take() {
                // SAFETY: `post` gave the `Reading` up, and its chain was not posted.
                let reading = unsafe { LlistBox::from_raw(reading.as_ptr()) };
                reply_reads.stranded.push(reading);
            }
        }
        let mut stranded = reply_reads.stranded.take_all();
        while let Some(reading) = stranded.pop() {
            drop(reading.into_inner().finish(self, &reply_reads.idle));
        }
        reply_reads.give_up_waiting(self);
    }
}

/// Cuts runs of bytes where the peer's segments end, and where there is a gap between pages.
struct Cutter<'p, I: Iterator<Item = BVec<'p>>> {
    bvecs: I,
    rest: Option<BVec<'p>>,
}

impl<'p, I: Iterator<Item = BVec<'p>>> Cutter<'p, I> {
    /// Up to `most` of the next bytes, without a gap.
    fn run(&mut self, most: u32) -> impl BVecs<'p> + use<'_, 'p, I> {
        let mut left = most;
        let mut before: Option<BVec<'p>> = None;
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let bvec = self.rest.take().or_else(|| self.bvecs.next())?;
            if before.is_some_and(|before| !before.adjoins(&bvec)) {
                self.rest = Some(bvec);
                left = 0;
                return None;
            }
            let (now, later) = bvec.split(left);
            self.rest = later;
            left -= now.len();
            before = Some(now);
            Some(now)
        })
    }
}

/// Handles the completion of a chain of Reads that [`ReplyReads::post`] posted.
impl<C: ReplyReader> OnCompletion<C> for Reading<C::ReplyRead> {
    type Queue = SendCq;

    #[inline]
    unsafe fn completed(
        worker: &SendWorker<'_, C>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    ) {
        // SAFETY: `post` set this handler for the last Read, which is in the chain until it is
        // released.
        let arg = unsafe { RwCtxt::done_arg(cqe) };
        let reply_reads = worker.reply_reads();
        // SAFETY: `post` gave up the `Reading` with this pointer, and this completion comes once.
        let reading = unsafe { LlistBox::<Self>::from_raw(arg.context.cast().as_ptr()) };
        let reply = reading.into_inner().finish(&**worker, &reply_reads.idle);
        reply_reads.send_queue.complete(arg.entries);
        let mut status = WcStatus::of(wc.status);
        if status == WcStatus::Success && reply_reads.next(&**worker).is_err() {
            status = WcStatus::Flushed;
        }
        if status != WcStatus::Success {
            // The RPCs are pinned, and a task that holds the send lock may wait for one of them, so
            // the drain may never come.
            reply_reads.give_up_waiting(&**worker);
        }
        if let Some(reply) = reply {
            C::read_done(worker, reply, status);
        }
    }
}
