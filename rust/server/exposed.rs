// SPDX-License-Identifier: GPL-2.0

//! Replies that are exposed, until the client has pulled them.
//!
//! What the engine's [`ExposedSlots`] say is done here to memory: a Reply's pages and their regions
//! are kept in the place that it was given. Three things end that, in any order: the message that
//! announces it has been sent; the client has said RDMA_DONE, or its time is over; and the regions
//! are invalid. Then the pages are let go.

use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Mutex,
        SpinLock, //
    }, //
};

use super::{
    ep::ServerEp,
    limits::EXPOSED_SEGMENTS,
    page_charge::PageCharge,
    tunables, //
};
use crate::{
    engine::responder::exposed::{
        ExposedSlot,
        ExposedSlots, //
    },
    lib::pages::Span,
    sunrpc::svc::XprtTimer,
    verbs::{
        Endpoint,
        MapError,
        Mapped,
        MrList,
        MrMapper,
        Registered,
        Responder,
        SendCtxt,
        Sent, //
    }, //
};

/// How long the release of a Reply may take. It waits for what was posted before it, and a client
/// that posts no Receives holds that up for as long as it likes: the connection is ended then.
const RELEASE_SECONDS: u32 = 30;

/// What waits for an invalidation: the place of the Reply.
pub(super) type Token = usize;

/// What is kept in a place.
#[derive(Default)]
struct Held {
    _share: Option<PageCharge>,
    /// Until the client has pulled the Reply, or its time is over.
    mrs: Option<MrList<Registered, Token>>,
    /// Once it was sent.
    sent: Option<Sent>,
    /// If it could not be.
    unsent: Option<SendCtxt>,
    /// The regions are invalid.
    invalid: bool,
}

struct State {
    places: ExposedSlots<KVec<ExposedSlot>>,
    held: KVec<Held>,
}

/// Maps what is to be exposed.
struct Mapper {
    mr_mapper: MrMapper<Token>,
    /// Regions that may still be made: all places can have [`EXPOSED_SEGMENTS`].
    unmade: u32,
}

/// A Reply that is about to be exposed.
pub(super) struct Exposing {
    pub(super) place: usize,
    pub(super) mrs: MrList<Mapped, Token>,
}

/// The exposed Replies of one connection.
#[pin_data]
pub(super) struct ExposedReplies {
    #[pin]
    state: SpinLock<State>,
    #[pin]
    mapper: Mutex<Option<Mapper>>,
}

impl ExposedReplies {
    /// Without places.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_spinlock!(
                State { places: ExposedSlots::new(KVec::new()), held: KVec::new() },
                "ExposedReplies::state"
            ),
            mapper <- new_mutex!(None, "ExposedReplies::mapper"),
        })
    }

    /// Makes `places` places, before there is a Reply; regions cover `pages` pages.
    pub(super) fn open(
        &self,
        ep: &Endpoint<ServerEp>,
        places: u32,
        pages: u32,
        gaps: bool,
    ) -> Result {
        let mut held = KVec::with_capacity(places as usize, GFP_KERNEL)?;
        for _ in 0..places {
            held.push(Held::default(), GFP_KERNEL)?;
        }
        let free = KVec::from_elem(ExposedSlot::Free, places as usize, GFP_KERNEL)?;
        *self.state.lock() = State {
            places: ExposedSlots::new(free),
            held,
        };
        *self.mapper.lock() = Some(Mapper {
            mr_mapper: MrMapper::for_endpoint(ep, pages, gaps)?,
            unmade: places.saturating_mul(EXPOSED_SEGMENTS),
        });
        Ok(())
    }

    /// Gives a Reply a place and maps the `spans` of `message` that are to be exposed; `None` if
    /// there is no place for it, or too much is exposed already.
    pub(super) fn expose<I: Iterator<Item = Span>>(
        &self,
        xid: u32,
        message: &SendCtxt,
        spans: impl Fn() -> I,
    ) -> Option<Exposing> {
        let taken = &tunables::EXPOSED_PAGES;
        let most = tunables::MAX_EXPOSED_PAGES.get() as usize;
        let share = PageCharge::take(taken, message.pages(), most).ok()?;
        let place = {
            let mut state = self.state.lock();
            let place = state.places.expose(xid).ok()?;
            *state.held.get_mut(place)? = Held {
                _share: Some(share),
                ..Held::default()
            };
            place
        };
        match self.map(message, spans) {
            Some(mrs) if mrs.len() <= EXPOSED_SEGMENTS => Some(Exposing { place, mrs }),
            _ => {
                self.withdraw(place);
                None
            }
        }
    }

    fn map<I: Iterator<Item = Span>>(
        &self,
        message: &SendCtxt,
        spans: impl Fn() -> I,
    ) -> Option<MrList<Mapped, Token>> {
        let mut mapper = self.mapper.lock();
        let Mapper { mr_mapper, unmade } = Option::as_mut(&mut *mapper)?;
        match message.map(mr_mapper, spans()) {
            Ok(mrs) => Some(mrs),
            Err(MapError::Failed) => None,
            Err(MapError::Exhausted) => {
                *unmade -= mr_mapper.pool().grow(EXPOSED_SEGMENTS.min(*unmade));
                message.map(mr_mapper, spans()).ok()
            }
        }
    }

    /// A Reply is not exposed after all.
    pub(super) fn withdraw(&self, place: usize) {
        let held = {
            let mut state = self.state.lock();
            state.places.withdraw(place);
            state.held.get_mut(place).map(core::mem::take)
        };
        drop(held);
    }

    /// Keeps the regions of a Reply that is being posted, and its time starts. `false` if the
    /// client has said RDMA_DONE before it could know of it: [`Self::release_early`] follows when
    /// it is posted, and nobody else releases it.
    pub(super) fn keep(&self, place: usize, mrs: MrList<Registered, Token>, deadline: u64) -> bool {
        let mut state = self.state.lock();
        if let Some(held) = state.held.get_mut(place) {
            held.mrs = Some(mrs);
        }
        state.places.set_deadline(place, deadline)
    }

    /// Keeps a Reply that could not be posted until the connection has ended.
    #[cold]
    pub(super) fn strand(&self, place: usize, message: SendCtxt) {
        if let Some(held) = self.state.lock().held.get_mut(place) {
            held.unsent = Some(message);
        }
    }

    /// The client gets what it asked for.
    #[cold]
    pub(super) fn release_early(&self, ep: &Endpoint<ServerEp>, place: usize) {
        let mrs = {
            let mut state = self.state.lock();
            let held = state.held.get_mut(place);
            held.and_then(|held| held.mrs.take())
        };
        if let Some(mrs) = mrs {
            self.release(ep, place, mrs);
        }
    }

    /// The client says that it has pulled a Reply, and has invalidated that handle.
    pub(super) fn done(&self, ep: &Endpoint<ServerEp>, xid: u32, invalidated: Option<u32>) {
        let found = {
            let mut state = self.state.lock();
            let place = state.places.done(xid);
            place.and_then(|place| {
                let held = state.held.get_mut(place)?;
                Some((place, held.mrs.take()?))
            })
        };
        let own = match found {
            Some((place, mut mrs)) => {
                let own = invalidated.is_none_or(|handle| mrs.take_invalidated(ep, handle));
                self.release(ep, place, mrs);
                own
            }
            None => invalidated.is_none(),
        };
        if !own {
            // Another Reply may have lost its region.
            ep.context().close();
        }
    }

    /// Takes back what the client did not pull in time, and ends the connection if that takes too
    /// long; returns when to do so again.
    pub(super) fn expire(&self, ep: &Endpoint<ServerEp>) -> Option<u64> {
        let now = XprtTimer::now();
        let grace = XprtTimer::ticks(RELEASE_SECONDS);
        if self.state.lock().places.is_overdue(now, grace) {
            ep.context().close();
            return None;
        }
        loop {
            let mut state = self.state.lock();
            let Some(place) = state.places.expired(now) else {
                return state.places.next_check(grace);
            };
            let mrs = state.held.get_mut(place).and_then(|held| held.mrs.take());
            drop(state);
            tunables::EXPIRED.inc();
            if let Some(mrs) = mrs {
                self.release(ep, place, mrs);
            }
        }
    }

    /// Invalidates what is still valid of a Reply.
    fn release(&self, ep: &Endpoint<ServerEp>, place: usize, mrs: MrList<Registered, Token>) {
        match mrs.try_fence() {
            Ok(_) => self.released(ep, place),
            Err(mrs) => {
                if mrs.invalidate(ep, place).is_err() {
                    ep.context().close();
                }
            }
        }
    }

    /// A Reply's regions are invalid.
    pub(super) fn released(&self, ep: &Endpoint<ServerEp>, place: usize) {
        self.settle(ep, place, |held| held.invalid = true);
    }

    /// The message that announces a Reply has been sent.
    pub(super) fn sent(&self, ep: &Endpoint<ServerEp>, place: usize, mut sent: Sent) {
        sent.unmap(ep);
        self.settle(ep, place, |held| held.sent = Some(sent));
    }

    /// Notes what has happened to a Reply, and lets its pages go if that was the last of it.
    fn settle(&self, ep: &Endpoint<ServerEp>, place: usize, note: impl FnOnce(&mut Held)) {
        let over = {
            let mut state = self.state.lock();
            let Some(held) = state.held.get_mut(place) else {
                return;
            };
            note(held);
            if !held.invalid || held.sent.is_none() {
                return;
            }
            let over = core::mem::take(held);
            state.places.released(place);
            over
        };
        if let Some(sent) = over.sent {
            ep.context().sending().put(ep, sent.into_message());
        }
    }

    /// The connection is over. What is exposed stays until the queue pair is gone, and goes with
    /// this.
    pub(super) fn drained(&self, ep: &Endpoint<ServerEp>) {
        let mut held = core::mem::replace(&mut self.state.lock().held, KVec::new());
        for held in held.iter_mut() {
            if let Some(message) = held.unsent.as_mut() {
                message.unmap(ep);
            }
        }
        self.state.lock().held = held;
    }
}
