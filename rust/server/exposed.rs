// SPDX-License-Identifier: GPL-2.0

//! Table of exposed Replies: Replies that stay registered until the client has read them.
//!
//! The engine's [`ExposedSlots`] decides; this table keeps the pages and MRs of the Reply in each
//! slot. A Reply is released after three events, in any order: its Send has completed; the client
//! has sent RDMA_DONE, or the Reply has expired; and its MRs are invalid.
//!
//! Not in the C module: this is the extension "pulled Replies".

use core::mem;

use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Mutex,
        SpinLock, //
    }, //
};

use super::{
    limits::EXPOSED_SEGMENTS,
    page_charge::{
        Charged,
        PageCharge, //
    },
    tunables, //
};
use crate::{
    engine::responder::exposed::{
        ExposedSlot,
        ExposedSlots, //
    },
    lib::{
        fence::Fenced,
        pages::Span,
        sync::Atomic, //
    },
    verbs::{
        Endpoint,
        ExposedPages,
        Exposes,
        ExposingSendCtxt,
        Exposure,
        ExposureWaiter,
        Invalidated,
        MapError,
        MrMapper,
        SendCtxt,
        SentExposing, //
    }, //
};

/// The owner of MRs that are being invalidated: the slot of their Reply.
pub(super) type Token = usize;

/// The resources of the Reply in one slot.
#[derive(Default)]
struct Held {
    charge: Option<PageCharge>,
    /// Set until the client sends RDMA_DONE, or the Reply expires.
    mrs: Option<ExposedPages<Token>>,
    /// The handle of one of `mrs`, if the client has invalidated it.
    invalidated: Option<Invalidated>,
    /// Set when the Send has completed.
    sent: Option<SentExposing>,
    /// Set when the MRs are invalid.
    fenced: Option<Fenced<Exposure>>,
}

/// The MRs of a Reply that is to be released.
pub(super) struct ToRelease {
    pub(super) mrs: ExposedPages<Token>,
    /// The handle of one of them, if the client has invalidated it.
    pub(super) invalidated: Option<Invalidated>,
}

impl Held {
    /// Removes the MRs.
    fn take_mrs(&mut self) -> Option<ToRelease> {
        Some(ToRelease {
            mrs: self.mrs.take()?,
            invalidated: self.invalidated.take(),
        })
    }
}

/// Whose handle a message has invalidated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HandleOf {
    /// That of the exposed Reply with this XID.
    Reply(u32),
    /// That of no Reply which is exposed, or a second one of the same Reply.
    Unknown,
}

/// A Reply that the client can no longer reach.
pub(super) struct Released {
    pub(super) ctxt: SendCtxt,
    _charge: Option<PageCharge>,
}

struct State {
    /// Pages that are charged for `held`.
    pages: usize,
    slots: ExposedSlots<KVVec<ExposedSlot>>,
    held: KVVec<Held>,
}

impl State {
    /// Empties a slot.
    fn take(&mut self, slot: usize) -> Option<Held> {
        let held = mem::take(self.held.get_mut(slot)?);
        self.pages -= held.charge.as_ref().map_or(0, PageCharge::pages);
        Some(held)
    }
}

/// Maps the memory that is exposed.
struct Mapper {
    mr_mapper: MrMapper<ExposureWaiter<Token>>,
    /// MRs that may still be allocated, of [`EXPOSED_SEGMENTS`] for each slot.
    unallocated: u32,
}

/// A Reply that is about to be exposed.
pub(super) struct Exposing {
    pub(super) slot: usize,
    pub(super) ctxt: ExposingSendCtxt<Token>,
}

/// A slot whose Reply has expired, or the time of the next check.
pub(super) enum Expired {
    Slot(usize, ToRelease),
    Next(Option<u64>),
}

/// The exposed Replies of one connection.
#[pin_data]
pub(super) struct ExposedReplies {
    #[pin]
    state: SpinLock<State>,
    #[pin]
    mapper: Mutex<Option<Mapper>>,
    /// Replies that have a slot. Written under the lock of `state`, like `pages`.
    replies: Atomic<u32>,
    /// The pages of these Replies.
    pages: Atomic<usize>,
}

impl ExposedReplies {
    /// A table without slots.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_spinlock!(
                State { pages: 0, slots: ExposedSlots::new(KVVec::new()), held: KVVec::new() },
                "ExposedReplies::state"
            ),
            mapper <- new_mutex!(None, "ExposedReplies::mapper"),
            replies: Atomic::new(0),
            pages: Atomic::new(0),
        })
    }

    /// Replies that have a slot, and their pages. Takes no lock.
    pub(super) fn usage(&self) -> (u32, usize) {
        (self.replies.load(Relaxed), self.pages.load(Relaxed))
    }

    /// Empties a slot.
    fn empty(&self, state: &mut State, slot: usize) -> Option<Held> {
        let held = state.take(slot)?;
        if held.charge.is_some() {
            let replies = self.replies.load(Relaxed);
            self.replies.store(replies.saturating_sub(1), Relaxed);
        }
        self.pages.store(state.pages, Relaxed);
        Some(held)
    }

    /// Allocates `slots` slots, before the first Reply. An MR covers `pages` pages, with `gaps` or
    /// not.
    pub(super) fn open<C: Exposes<Owner = Exposure, Token = Token>>(
        &self,
        ep: &Endpoint<C>,
        slots: u32,
        pages: u32,
        gaps: bool,
    ) -> Result {
        let mut held = KVVec::with_capacity(slots as usize, GFP_KERNEL)?;
        for _ in 0..slots {
            held.push(Held::default(), GFP_KERNEL)?;
        }
        let free = KVVec::from_elem(ExposedSlot::Free, slots as usize, GFP_KERNEL)?;
        *self.state.lock() = State {
            pages: 0,
            slots: ExposedSlots::new(free),
            held,
        };
        *self.mapper.lock() = Some(Mapper {
            mr_mapper: MrMapper::for_endpoint(ep, pages, gaps, EXPOSED_SEGMENTS)?,
            unallocated: slots.saturating_mul(EXPOSED_SEGMENTS),
        });
        Ok(())
    }

    /// Takes a slot for the Reply `xid`, and maps the `spans` of `ctxt` that are to be exposed.
    ///
    /// # Errors
    ///
    /// `ctxt`, if no slot is free, or the page limit is reached.
    pub(super) fn expose<I: Iterator<Item = Span>>(
        &self,
        xid: u32,
        ctxt: SendCtxt,
        spans: impl Fn() -> I,
    ) -> Result<Exposing, SendCtxt> {
        let Some(slot) = self.take_slot(xid, ctxt.pages()) else {
            return Err(ctxt);
        };
        match self.map(ctxt, spans) {
            Ok(ctxt) => Ok(Exposing { slot, ctxt }),
            Err(ctxt) => {
                self.withdraw(slot);
                Err(ctxt)
            }
        }
    }

    fn take_slot(&self, xid: u32, pages: usize) -> Option<usize> {
        let limit = tunables::MAX_EXPOSED_PAGES.get() as usize;
        let mut state = self.state.lock();
        let charge = match PageCharge::take(&tunables::EXPOSED_PAGES, pages, state.pages, limit) {
            Charged::Within(charge) => charge,
            Charged::OverLimit(_) => return None,
        };
        let slot = state.slots.expose(xid).ok()?;
        *state.held.get_mut(slot)? = Held {
            charge: Some(charge),
            ..Held::default()
        };
        state.pages += pages;
        self.pages.store(state.pages, Relaxed);
        let replies = self.replies.load(Relaxed);
        self.replies.store(replies + 1, Relaxed);
        Some(slot)
    }

    fn map<I: Iterator<Item = Span>>(
        &self,
        ctxt: SendCtxt,
        spans: impl Fn() -> I,
    ) -> Result<ExposingSendCtxt<Token>, SendCtxt> {
        let mut mapper = self.mapper.lock();
        let Some(Mapper {
            mr_mapper,
            unallocated,
        }) = Option::as_mut(&mut *mapper)
        else {
            return Err(ctxt);
        };
        match ctxt.expose(mr_mapper, spans()) {
            Err((MapError::Exhausted, ctxt)) => {
                *unallocated -= mr_mapper.pool().grow(EXPOSED_SEGMENTS.min(*unallocated));
                ctxt.expose(mr_mapper, spans()).map_err(|(_, ctxt)| ctxt)
            }
            mapped => mapped.map_err(|(_, ctxt)| ctxt),
        }
    }

    /// Frees the slot of a Reply that is not exposed after all.
    pub(super) fn withdraw(&self, slot: usize) {
        let held = {
            let mut state = self.state.lock();
            state.slots.withdraw(slot);
            self.empty(&mut state, slot)
        };
        drop(held);
    }

    /// Stores the MRs of a Reply that is being posted, and sets its deadline. Returns `false` if
    /// the client sent RDMA_DONE before the Send: only the caller then releases the Reply, once it
    /// is posted.
    pub(super) fn hold(&self, slot: usize, mrs: ExposedPages<Token>, deadline: u64) -> bool {
        let mut state = self.state.lock();
        if let Some(held) = state.held.get_mut(slot) {
            held.mrs = Some(mrs);
        }
        state.slots.set_deadline(slot, deadline)
    }

    /// Removes the MRs of a Reply.
    pub(super) fn take_mrs(&self, slot: usize) -> Option<ToRelease> {
        let mut state = self.state.lock();
        state.held.get_mut(slot)?.take_mrs()
    }

    /// Notes that a message has invalidated a handle. An nfsd thread handles the message later, and
    /// the Reply may expire in between.
    pub(super) fn note_invalidated(&self, invalidated: Invalidated) -> HandleOf {
        let mut state = self.state.lock();
        let State { slots, held, .. } = &mut *state;
        let handle = invalidated.handle();
        let has_handle = |held: &Held| {
            let mrs = held.mrs.as_ref().map(|mrs| mrs.exposed().exposed());
            mrs.is_some_and(|mut mrs| mrs.any(|mr| mr.handle == handle))
        };
        let mut held = held.iter_mut().enumerate();
        match held.find(|(_, held)| has_handle(held)) {
            Some((slot, held)) if held.invalidated.is_none() => {
                held.invalidated = Some(invalidated);
                slots.xid(slot).map_or(HandleOf::Unknown, HandleOf::Reply)
            }
            _ => HandleOf::Unknown,
        }
    }

    /// Handles RDMA_DONE. Returns the slot and the MRs to release, unless RDMA_DONE is unexpected.
    pub(super) fn done(&self, xid: u32) -> Option<(usize, ToRelease)> {
        let mut state = self.state.lock();
        let slot = state.slots.done(xid)?;
        Some((slot, state.held.get_mut(slot)?.take_mrs()?))
    }

    /// Whether a release takes longer than `grace`.
    pub(super) fn is_overdue(&self, now: u64, grace: u64) -> bool {
        self.state.lock().slots.is_overdue(now, grace)
    }

    /// Finds an expired Reply.
    pub(super) fn expired(&self, now: u64, grace: u64) -> Expired {
        let mut state = self.state.lock();
        let expired = state.slots.expired(now).and_then(|slot| {
            // A Reply with a deadline has its MRs: `hold` stores both.
            let reply = state.held.get_mut(slot)?.take_mrs()?;
            Some(Expired::Slot(slot, reply))
        });
        expired.unwrap_or_else(|| Expired::Next(state.slots.next_check(grace)))
    }

    /// Notes that the MRs of a Reply are invalid. Returns its resources if its Send has completed.
    pub(super) fn invalidated(&self, slot: usize, fenced: Fenced<Exposure>) -> Option<Released> {
        self.settle(slot, |held| held.fenced = Some(fenced))
    }

    /// Notes that the Send of a Reply has completed. Returns its resources if its MRs are invalid.
    pub(super) fn sent(&self, slot: usize, sent: SentExposing) -> Option<Released> {
        self.settle(slot, |held| held.sent = Some(sent))
    }

    fn settle(&self, slot: usize, note: impl FnOnce(&mut Held)) -> Option<Released> {
        let mut state = self.state.lock();
        let held = state.held.get_mut(slot)?;
        note(held);
        let (sent, fenced) = match (held.sent.take(), held.fenced.take()) {
            (Some(sent), Some(fenced)) => (sent, fenced),
            (sent, fenced) => {
                held.sent = sent;
                held.fenced = fenced;
                return None;
            }
        };
        match sent.release(fenced) {
            Ok(ctxt) => {
                let held = self.empty(&mut state, slot)?;
                state.slots.released(slot);
                Some(Released {
                    ctxt,
                    _charge: held.charge,
                })
            }
            // Cannot happen: both are of one slot. The pages stay until the endpoint is dropped.
            Err((sent, _)) => {
                held.sent = Some(sent);
                None
            }
        }
    }
}
