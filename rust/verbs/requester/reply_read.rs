// SPDX-License-Identifier: GPL-2.0

//! Pulling a Reply: RDMA Reads into the memory that its consumer has prepared.
//!
//! The waiter for the Reads owns that memory. It moves from the caller to [`ReplyReads::start`], to
//! the device or the line of waiters for the Send Queue, and to [`ReplyReader::read_done`], once
//! the memory is unmapped. In between, no code can access or release the memory.

use core::{
    mem,
    ptr, //
};

use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

use crate::{
    bindings,
    lib::{
        bvec::BVec,
        gfp::Gfp,
        llist::{
            Queue,
            Stack, //
        },
        llist_box::{
            LlistBox,
            UninitBox, //
        },
    },
    verbs::{
        device::dma_buf::Direction,
        endpoint::{
            bad_wr::BadWr,
            completion::{
                SendWorker, //
                WcStatus,
            },
            ep::{
                Drained,
                Endpoint, //
            },
            ops::EndpointOps,
            send_queue::{
                Permit,
                SendQueue, //
            }, //
        },
        rw::{
            rw_chain::RwChain,
            rw_ctxt::{
                DoneArg,
                Remote,
                RwCtxt,
                RwCtxtPool, //
            }, //
        }, //
    }, //
};

/// Pulling begins in the receive worker, which must not wait for memory: the Reply at hand may be
/// what frees some.
const GFP: Gfp = Gfp::NoWait;

/// A context that pulls Replies.
pub(crate) trait ReplyReader: EndpointOps {
    /// What waits for the Reads, and keeps the memory that they go to.
    type ReplyRead: Send + 'static;

    /// The resources for it.
    fn reply_reads(&self) -> &ReplyReads<Self::ReplyRead>;

    /// The Reads have ended, well or not. The send queue's worker.
    fn read_done(worker: &SendWorker<'_, Self>, what: Self::ReplyRead, how: WcStatus);
}

/// Why nothing is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadNotPosted {
    /// The memory is too short, or in too many pieces for the Send Queue.
    Unsuitable,
    /// The connection is at its end, or there is no memory to go on with.
    Failed,
}

/// Reads that are prepared. Their transfers are released before it is dropped.
///
/// # Invariants
///
/// `rw_chain` go to memory that `what` keeps.
struct Reading<P> {
    rw_chain: RwChain,
    what: P,
}

impl<P> Reading<P> {
    /// Unmaps the memory and gives back what kept it.
    fn finish<C: EndpointOps>(mut self, ep: &Endpoint<C>, pool: &RwCtxtPool) -> P {
        self.rw_chain.release(ep, pool);
        self.what
    }
}

/// Those that wait for room on the Send Queue, in order.
struct Line<P> {
    first: Option<LlistBox<Reading<P>>>,
    rest: Queue<LlistBox<Reading<P>>>,
}

/// What pulling takes on one connection.
#[pin_data]
pub(crate) struct ReplyReads<P> {
    #[pin]
    send_queue: SendQueue,
    #[pin]
    idle: RwCtxtPool,
    #[pin]
    line: SpinLock<Line<P>>,
    /// What was posted in part: nobody knows which part, until the queue pair is drained.
    stranded: Stack<LlistBox<Reading<P>>>,
}

impl<P: Send + 'static> ReplyReads<P> {
    /// Without room for any: see [`Self::open`].
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            send_queue <- SendQueue::new(),
            idle <- RwCtxtPool::new(),
            line <- new_spinlock!(Line { first: None, rest: Queue::new() }, "ReplyReads::line"),
            stranded: Stack::new(),
        })
    }

    /// Sets aside `entries` of the Send Queue, once.
    pub(crate) fn open(&self, entries: u32) {
        self.send_queue.open(entries);
    }

    /// Prepares Reads of what `sources` name, in order, into `bvecs`.
    ///
    /// Like whoever maps a [`BVec`], the caller sees to it that the memory stays: it is kept by
    /// what [`Self::start`] is given. Does not wait for memory: the next Reply may be what frees
    /// some.
    ///
    /// # Errors
    ///
    /// [`ReadNotPosted`].
    pub(crate) fn prepare<'p, C: ReplyReader<ReplyRead = P>>(
        &self,
        ep: &Endpoint<C>,
        bvecs: impl Iterator<Item = BVec<'p>>,
        sources: impl Iterator<Item = (Remote, u32)>,
    ) -> Result<PreparedReads<P>, ReadNotPosted> {
        // First, with plain flags: if this fails, the reserves are left alone (see
        // [`Gfp::scope`]).
        let reading = LlistBox::new_uninit(GFP.flags()).map_err(|_| ReadNotPosted::Failed)?;
        let mut cutter = Cutter { bvecs, rest: None };
        let mut rw_chain = RwChain::new(Direction::FromDevice);
        for (mut remote, mut left) in sources {
            while left > 0 {
                let run = cutter.run(left);
                // SAFETY: The memory stays, by promise P1: what `start` is given keeps it.
                let added = unsafe { rw_chain.add_bvecs(ep, &self.idle, 1, run, remote, GFP) };
                let why = match added {
                    Ok(0) => ReadNotPosted::Unsuitable,
                    Ok(bytes) => {
                        left = left.saturating_sub(bytes);
                        // The peer's numbers, and its business.
                        remote.offset = remote.offset.wrapping_add(u64::from(bytes));
                        continue;
                    }
                    Err(_) => ReadNotPosted::Failed,
                };
                rw_chain.release(ep, &self.idle);
                return Err(why);
            }
        }
        if rw_chain.entries() > self.send_queue.depth() {
            rw_chain.release(ep, &self.idle);
            return Err(ReadNotPosted::Unsuitable);
        }
        Ok(PreparedReads { rw_chain, reading })
    }

    /// Posts the prepared Reads, at once or when the Send Queue has room.
    /// [`ReplyReader::read_done`] follows, and until then `what` keeps the memory.
    ///
    /// # Errors
    ///
    /// [`ReadNotPosted::Failed`]; what would have waited is dropped.
    pub(crate) fn start<C: ReplyReader<ReplyRead = P>>(
        &self,
        ep: &Endpoint<C>,
        prepared: PreparedReads<P>,
        what: P,
    ) -> Result<(), ReadNotPosted> {
        let PreparedReads { rw_chain, reading } = prepared;
        let reading = reading.write(Reading { rw_chain, what });
        let mut line = self.line.lock();
        let permit = match line.first {
            Some(_) => None,
            None => self.send_queue.try_reserve(reading.rw_chain.entries()),
        };
        match permit {
            Some(permit) => {
                drop(line);
                self.post(ep, reading, permit)
            }
            None => {
                match line.first {
                    Some(_) => line.rest.push(reading),
                    None => line.first = Some(reading),
                }
                Ok(())
            }
        }
    }

    /// Posts the Reads of all whose turn has come.
    fn next<C: ReplyReader<ReplyRead = P>>(&self, ep: &Endpoint<C>) -> Result<(), ReadNotPosted> {
        loop {
            let mut line = self.line.lock();
            let Some(first) = line.first.take() else {
                return Ok(());
            };
            let Some(permit) = self.send_queue.try_reserve(first.rw_chain.entries()) else {
                line.first = Some(first);
                return Ok(());
            };
            line.first = line.rest.pop();
            drop(line);
            self.post(ep, first, permit)?;
        }
    }

    fn post<C: ReplyReader<ReplyRead = P>>(
        &self,
        ep: &Endpoint<C>,
        mut reading: LlistBox<Reading<P>>,
        permit: Permit<'_>,
    ) -> Result<(), ReadNotPosted> {
        let arg = DoneArg {
            context: reading.as_non_null().cast(),
            entries: permit.entries(),
            posted: None,
        };
        let rw_chain = &mut reading.rw_chain;
        rw_chain.set_done(done::<C>, arg);
        // SAFETY: Nothing follows the chain.
        let first = unsafe { rw_chain.link(ep, ptr::null_mut()) };
        let Some(first) = first.filter(|first| !first.is_null()) else {
            drop(reading.into_inner().finish(ep, &self.idle));
            return Err(ReadNotPosted::Failed);
        };
        let raw = reading.into_raw();
        // SAFETY: Work requests and memory belong to the reading, which nobody can reach until
        // `done` takes it back, or the code below.
        let Err((_, left)) = (unsafe { permit.post(ep, &self.send_queue, first) }) else {
            return Ok(());
        };
        if left == BadWr::Unknown {
            return Err(ReadNotPosted::Failed);
        }
        // SAFETY: The last one is not posted, so that `done` does not come.
        let reading = unsafe { LlistBox::from_raw(raw) };
        if left == BadWr::First {
            drop(reading.into_inner().finish(ep, &self.idle));
        } else {
            self.stranded.push(reading);
        }
        Err(ReadNotPosted::Failed)
    }

    /// Gives up what waits; to be called by [`EndpointOps::drained`], by the context that this is
    /// of. What comes out is dropped.
    pub(crate) fn drained<C: ReplyReader<ReplyRead = P>>(&self, ep: &Drained<'_, C>) {
        let mut stranded = self.stranded.take_all();
        while let Some(reading) = stranded.pop() {
            if reading.rw_chain.are_of(ep) {
                drop(reading.into_inner().finish(ep, &self.idle));
            } else {
                // Perhaps still posted.
                mem::forget(reading);
            }
        }
        loop {
            let first = {
                let mut line = self.line.lock();
                let first = line.first.take();
                line.first = line.rest.pop();
                first
            };
            match first {
                Some(reading) => drop(reading.into_inner().finish(ep, &self.idle)),
                None => return,
            }
        }
    }
}

/// Reads that are ready to be started. [`ReplyReads::start`] is the way to get rid of them.
#[must_use]
pub(crate) struct PreparedReads<P> {
    rw_chain: RwChain,
    reading: UninitBox<Reading<P>>,
}

/// Cuts pieces where segments end, and at seams: where there is a gap between one and the next.
struct Cutter<'p, I: Iterator<Item = BVec<'p>>> {
    bvecs: I,
    rest: Option<BVec<'p>>,
}

impl<'p, I: Iterator<Item = BVec<'p>>> Cutter<'p, I> {
    /// Up to `most` of the next bytes, none of them behind a seam.
    fn run(&mut self, most: u32) -> impl Iterator<Item = BVec<'p>> + use<'_, 'p, I> {
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

/// The end of a chain of Reads.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a chain that
/// [`ReplyReads::post`] posted there.
unsafe extern "C" fn done<C: ReplyReader>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: `post` has called `set_done` for the last Read, which is the one that is signalled.
    let arg = unsafe { RwCtxt::done_arg(cqe) };
    let reply_reads = worker.context().reply_reads();
    // SAFETY: Left there by `post`, for this.
    let reading =
        unsafe { LlistBox::<Reading<C::ReplyRead>>::from_raw(arg.context.cast().as_ptr()) };
    let what = reading.into_inner().finish(&*worker, &reply_reads.idle);
    reply_reads.send_queue.complete(arg.entries);
    let mut how = WcStatus::of(wc.status);
    if how == WcStatus::Success && reply_reads.next(&*worker).is_err() {
        how = WcStatus::Flushed;
    }
    C::read_done(&worker, what, how);
}
