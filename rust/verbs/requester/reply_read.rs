// SPDX-License-Identifier: GPL-2.0

//! Pulling a Reply: RDMA Reads into the memory that its consumer has prepared.
//!
//! What waits for the Reads owns that memory, and moves: the caller -> [`ReplyPulls::start`] -> the
//! device, or a line of those that wait for room on the Send Queue -> [`Puller::pulled`], once the
//! memory is unmapped. Nobody can look at it in between, nor give it away.

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
        bvec::Piece,
        gfp::Patience,
        llist::{
            Queue,
            Stack, //
        },
        llist_box::{
            LinkedBox,
            UninitBox, //
        },
        pool::Pool, //
    },
    verbs::{
        device::dma_buf::Direction,
        endpoint::{
            bad_wr::NotTaken,
            completion::{
                Ended,
                SendWorker, //
            },
            ep::{
                Drained,
                Endpoint, //
            },
            ops::Context,
            send_queue::{
                Permit,
                SendQueue, //
            }, //
        },
        rw::{
            rw_chain::Transfers,
            rw_ctxt::{
                Armed,
                Remote,
                Transfer, //
            }, //
        }, //
    }, //
};

/// Pulling begins in the receive worker, which must not wait for memory: the Reply at hand may be
/// what frees some.
const PATIENCE: Patience = Patience::Fails;

/// A context that pulls Replies.
pub(crate) trait Puller: Context {
    /// What waits for the Reads, and keeps the memory that they go to.
    type Pulling: Send + 'static;

    /// The resources for it.
    fn pulls(&self) -> &ReplyPulls<Self::Pulling>;

    /// The Reads have ended, well or not. The send queue's worker.
    fn pulled(worker: &SendWorker<'_, Self>, what: Self::Pulling, how: Ended);
}

/// Why nothing is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPulled {
    /// The memory is too short, or in too many pieces for the Send Queue.
    Unsuitable,
    /// The connection is at its end, or there is no memory to go on with.
    Failed,
}

/// Reads that are prepared. Their transfers are released before it is dropped.
///
/// # Invariants
///
/// `transfers` go to memory that `what` keeps.
struct Reading<P> {
    transfers: Transfers,
    what: P,
}

impl<P> Reading<P> {
    /// Unmaps the memory and gives back what kept it.
    fn finish<C: Context>(mut self, ep: &Endpoint<C>, pool: &Pool<LinkedBox<Transfer>>) -> P {
        self.transfers.release(ep, pool);
        self.what
    }
}

/// Those that wait for room on the Send Queue, in order.
struct Line<P> {
    first: Option<LinkedBox<Reading<P>>>,
    rest: Queue<LinkedBox<Reading<P>>>,
}

/// What pulling takes on one connection.
#[pin_data]
pub(crate) struct ReplyPulls<P> {
    #[pin]
    send_queue: SendQueue,
    #[pin]
    idle: Pool<LinkedBox<Transfer>>,
    #[pin]
    line: SpinLock<Line<P>>,
    /// What was posted in part: nobody knows which part, until the queue pair is drained.
    stranded: Stack<LinkedBox<Reading<P>>>,
}

impl<P: Send + 'static> ReplyPulls<P> {
    /// Without room for any: see [`Self::open`].
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            send_queue <- SendQueue::new(),
            idle <- Pool::new(),
            line <- new_spinlock!(Line { first: None, rest: Queue::new() }, "ReplyPulls::line"),
            stranded: Stack::new(),
        })
    }

    /// Sets aside `entries` of the Send Queue, once.
    pub(crate) fn open(&self, entries: u32) {
        self.send_queue.open(entries);
    }

    /// Prepares Reads of what `sources` name, in order, into `pieces`.
    ///
    /// Like whoever maps a [`Piece`], the caller sees to it that the memory stays: it is kept by
    /// what [`Self::start`] is given. Does not wait for memory: the next Reply may be what frees
    /// some.
    ///
    /// # Errors
    ///
    /// [`NotPulled`].
    pub(crate) fn prepare<'p, C: Puller<Pulling = P>>(
        &self,
        ep: &Endpoint<C>,
        pieces: impl Iterator<Item = Piece<'p>>,
        sources: impl Iterator<Item = (Remote, u32)>,
    ) -> Result<Prepared<P>, NotPulled> {
        // First, with plain flags: if this fails, the reserves are left alone (see
        // [`Patience::scope`]).
        let reading = LinkedBox::uninit(PATIENCE.flags()).map_err(|_| NotPulled::Failed)?;
        let mut cutter = Cutter { pieces, rest: None };
        let mut transfers = Transfers::new(Direction::FromDevice);
        for (mut remote, mut left) in sources {
            while left > 0 {
                let run = cutter.run(left);
                // SAFETY: The memory stays, by promise P1: what `start` is given keeps it.
                let added =
                    unsafe { transfers.add_pieces(ep, &self.idle, 1, run, remote, PATIENCE) };
                let why = match added {
                    Ok(0) => NotPulled::Unsuitable,
                    Ok(octets) => {
                        left = left.saturating_sub(octets);
                        // The peer's numbers, and its business.
                        remote.offset = remote.offset.wrapping_add(u64::from(octets));
                        continue;
                    }
                    Err(_) => NotPulled::Failed,
                };
                transfers.release(ep, &self.idle);
                return Err(why);
            }
        }
        if transfers.entries() > self.send_queue.depth() {
            transfers.release(ep, &self.idle);
            return Err(NotPulled::Unsuitable);
        }
        Ok(Prepared { transfers, reading })
    }

    /// Reads what was prepared, at once or when there is room; [`Puller::pulled`] follows, and
    /// until then `what` keeps the memory.
    ///
    /// # Errors
    ///
    /// [`NotPulled::Failed`]; what would have waited is dropped.
    pub(crate) fn start<C: Puller<Pulling = P>>(
        &self,
        ep: &Endpoint<C>,
        prepared: Prepared<P>,
        what: P,
    ) -> Result<(), NotPulled> {
        let Prepared { transfers, reading } = prepared;
        let reading = reading.fill(Reading { transfers, what });
        let mut line = self.line.lock();
        let permit = match line.first {
            Some(_) => None,
            None => self.send_queue.try_reserve(reading.transfers.entries()),
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
    fn next<C: Puller<Pulling = P>>(&self, ep: &Endpoint<C>) -> Result<(), NotPulled> {
        loop {
            let mut line = self.line.lock();
            let Some(first) = line.first.take() else {
                return Ok(());
            };
            let Some(permit) = self.send_queue.try_reserve(first.transfers.entries()) else {
                line.first = Some(first);
                return Ok(());
            };
            line.first = line.rest.pop();
            drop(line);
            self.post(ep, first, permit)?;
        }
    }

    fn post<C: Puller<Pulling = P>>(
        &self,
        ep: &Endpoint<C>,
        mut reading: LinkedBox<Reading<P>>,
        permit: Permit<'_>,
    ) -> Result<(), NotPulled> {
        let armed = Armed {
            companion: reading.as_ptr().cast(),
            entries: permit.entries(),
            posted: None,
        };
        let transfers = &mut reading.transfers;
        transfers.arm(done::<C>, armed);
        // SAFETY: Nothing follows the chain.
        let first = unsafe { transfers.link(ep, ptr::null_mut()) };
        let Some(first) = first.filter(|first| !first.is_null()) else {
            drop(reading.into_inner().finish(ep, &self.idle));
            return Err(NotPulled::Failed);
        };
        let raw = reading.into_raw();
        // SAFETY: Work requests and memory belong to the reading, which nobody can reach until
        // `done` takes it back, or the code below.
        let Err((_, left)) = (unsafe { permit.post(ep, first) }) else {
            return Ok(());
        };
        if left == NotTaken::Unknown {
            return Err(NotPulled::Failed);
        }
        // SAFETY: The last one is not posted, so that `done` does not come.
        let reading = unsafe { LinkedBox::from_raw(raw) };
        if left == NotTaken::All {
            drop(reading.into_inner().finish(ep, &self.idle));
        } else {
            self.stranded.push(reading);
        }
        Err(NotPulled::Failed)
    }

    /// Gives up what waits; to be called by [`Context::drained`], by the context that this is of.
    /// What comes out is dropped.
    pub(crate) fn drained<C: Puller<Pulling = P>>(&self, ep: &Drained<'_, C>) {
        let mut stranded = self.stranded.take_all();
        while let Some(reading) = stranded.pop() {
            if reading.transfers.are_of(ep) {
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

/// Reads that are ready to be started. [`ReplyPulls::start`] is the way to get rid of them.
#[must_use]
pub(crate) struct Prepared<P> {
    transfers: Transfers,
    reading: UninitBox<Reading<P>>,
}

/// Cuts pieces where segments end, and at seams: where there is a gap between one and the next.
struct Cutter<'p, I: Iterator<Item = Piece<'p>>> {
    pieces: I,
    rest: Option<Piece<'p>>,
}

impl<'p, I: Iterator<Item = Piece<'p>>> Cutter<'p, I> {
    /// Up to `most` of the next octets, none of them behind a seam.
    fn run(&mut self, most: u32) -> impl Iterator<Item = Piece<'p>> + use<'_, 'p, I> {
        let mut left = most;
        let mut before: Option<Piece<'p>> = None;
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let piece = self.rest.take().or_else(|| self.pieces.next())?;
            if before.is_some_and(|before| !before.adjoins(&piece)) {
                self.rest = Some(piece);
                left = 0;
                return None;
            }
            let (now, later) = piece.split(left);
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
/// [`ReplyPulls::post`] posted there.
unsafe extern "C" fn done<C: Puller>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: `post` signals its last Read, which is armed until it is released.
    let armed = unsafe { Transfer::completed(cqe) };
    let pulls = worker.context().pulls();
    // SAFETY: Left there by `post`, for this.
    let reading = unsafe { LinkedBox::<Reading<C::Pulling>>::from_raw(armed.companion.cast()) };
    let what = reading.into_inner().finish(&*worker, &pulls.idle);
    pulls.send_queue.complete(armed.entries);
    let mut how = Ended::of(wc.status);
    if how == Ended::Well && pulls.next(&*worker).is_err() {
        how = Ended::Flushed;
    }
    C::pulled(&worker, what, how);
}
