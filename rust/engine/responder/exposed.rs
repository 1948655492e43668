// SPDX-License-Identifier: GPL-2.0

//! Which Replies a responder exposes, and until when.
//!
//! ```text
//!           expose            done                    released
//!     free --------> Exposed ------> Ending ---------------------> free
//!                       |              ^                             ^
//!                       |              | done                        |
//!                       | expired      |     released                | done
//!                       +--------> Expiring --------> Owed ----------+
//! ```
//!
//! One that was not sent after all is withdrawn: it is free again.
//!
//! A Reply takes a place from the moment it is exposed until its memory is out of the requester's
//! reach again *and* its RDMA_DONE has come: for each place there is a Receive, on top of those for
//! the credits. That is the whole of credit accounting for RDMA_DONE. It takes no credit, there is
//! one for each Reply that was exposed, and where it arrives a Receive stands for it, however late
//! it comes. A requester that keeps its RDMA_DONEs back runs out of places, and gets ERR_CHUNK
//! where it would have got a Reply to pull; it does not run anybody out of memory, which is
//! released when the time is over. A release that takes too long is [overdue](Places::is_overdue):
//! what it waits for is in the requester's hands, too.
//!
//! Time is a number that only grows; what it counts is the caller's business.

use core::ops::DerefMut;

/// One place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExposedSlot {
    /// Nothing is exposed.
    #[default]
    Free,
    /// A Reply is exposed.
    Exposed {
        /// Its XID.
        xid: u32,
        /// When it is to be released at the latest: its time starts when it is posted.
        deadline: Option<u64>,
    },
    /// Its RDMA_DONE has come; its memory is being released.
    Ending {
        /// When its time is over, or was, if it had started.
        since: Option<u64>,
    },
    /// Its time is over; its memory is being released, and its RDMA_DONE has not come.
    Expiring {
        /// Its XID.
        xid: u32,
        /// When that was found.
        since: u64,
    },
    /// Its memory is released, and its RDMA_DONE has not come.
    Owed {
        /// Its XID.
        xid: u32,
    },
}

impl ExposedSlot {
    /// The XID of the Reply that an RDMA_DONE may still come for.
    fn xid(&self) -> Option<u32> {
        match *self {
            Self::Exposed { xid, .. } | Self::Expiring { xid, .. } | Self::Owed { xid } => {
                Some(xid)
            }
            Self::Free | Self::Ending { .. } => None,
        }
    }
}

/// A Reply cannot be exposed: ERR_CHUNK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotExposed {
    /// All places are taken.
    Full,
    /// A Reply with this XID has a place already: nobody could tell whose RDMA_DONE comes.
    SameXid,
}

/// The places of one connection, in memory of the caller's.
#[derive(Debug)]
pub struct ExposedSlots<S>(S);

impl<S: DerefMut<Target = [ExposedSlot]>> ExposedSlots<S> {
    /// Takes over `places`, all of them free.
    pub fn new(mut places: S) -> Self {
        places.fill(ExposedSlot::Free);
        Self(places)
    }

    /// Gives a Reply a place; the caller exposes it and calls [`Self::set_deadline`], or else
    /// [`Self::withdraw`], unless the connection ends first.
    pub fn expose(&mut self, xid: u32) -> Result<usize, NotExposed> {
        let mut free = None;
        for (index, place) in self.0.iter().enumerate() {
            if place.xid() == Some(xid) {
                return Err(NotExposed::SameXid);
            }
            if *place == ExposedSlot::Free {
                free = free.or(Some(index));
            }
        }
        let index = free.ok_or(NotExposed::Full)?;
        let deadline = None;
        self.set(index, ExposedSlot::Exposed { xid, deadline });
        Ok(index)
    }

    /// Sets the deadline of a Reply that is posted; `false` if it is not exposed any more.
    pub fn set_deadline(&mut self, index: usize, deadline: u64) -> bool {
        match self.0.get(index) {
            Some(&ExposedSlot::Exposed { xid, .. }) => {
                let deadline = Some(deadline);
                self.set(index, ExposedSlot::Exposed { xid, deadline });
                true
            }
            Some(ExposedSlot::Ending { .. }) => {
                let since = Some(deadline);
                self.set(index, ExposedSlot::Ending { since });
                false
            }
            _ => false,
        }
    }

    /// Gives the place of a Reply back that was not sent after all.
    pub fn withdraw(&mut self, index: usize) {
        self.set(index, ExposedSlot::Free);
    }

    /// An RDMA_DONE has come. Returns the place that is to be released now, if there is one; else
    /// it was late, or stray, and there is nothing to be done about it.
    pub fn done(&mut self, xid: u32) -> Option<usize> {
        let (index, place) = self.find(xid)?;
        let (next, release) = match place {
            ExposedSlot::Exposed { deadline, .. } => {
                (ExposedSlot::Ending { since: deadline }, Some(index))
            }
            ExposedSlot::Expiring { since, .. } => {
                (ExposedSlot::Ending { since: Some(since) }, None)
            }
            _ => (ExposedSlot::Free, None),
        };
        self.set(index, next);
        release
    }

    /// A place that is to be released because its time is over; to be asked until there is none.
    pub fn expired(&mut self, now: u64) -> Option<usize> {
        let over = |place: &ExposedSlot| match *place {
            ExposedSlot::Exposed {
                xid,
                deadline: Some(deadline),
            } => (deadline <= now).then_some(xid),
            _ => None,
        };
        let mut places = self.0.iter().enumerate();
        let (index, xid) = places.find_map(|(index, place)| Some((index, over(place)?)))?;
        self.set(index, ExposedSlot::Expiring { xid, since: now });
        Some(index)
    }

    /// Whether the memory of a Reply is still being released `grace` after its time was over:
    /// then only the end of the connection releases it.
    pub fn is_overdue(&self, now: u64, grace: u64) -> bool {
        let mut places = self.0.iter();
        places.any(|place| due(place, grace).is_some_and(|due| due <= now))
    }

    /// The memory that was exposed from this place is out of the requester's reach.
    pub fn released(&mut self, index: usize) {
        let next = match self.0.get(index) {
            Some(&ExposedSlot::Expiring { xid, .. }) => ExposedSlot::Owed { xid },
            _ => ExposedSlot::Free,
        };
        self.set(index, next);
    }

    /// When to look next: for a Reply whose time is over, or whose release is overdue `grace`
    /// after that.
    pub fn next_check(&self, grace: u64) -> Option<u64> {
        let looks = self.0.iter().filter_map(|place| match *place {
            ExposedSlot::Exposed { deadline, .. } => deadline,
            _ => due(place, grace),
        });
        looks.min()
    }

    /// How many RDMA_DONEs may still come, at most: as many Receives must stand for them.
    #[allow(dead_code, reason = "what a model of this is compared with")]
    pub fn owed(&self) -> usize {
        self.0.iter().filter_map(ExposedSlot::xid).count()
    }

    /// The places as they are.
    #[allow(dead_code, reason = "what a model of this is compared with")]
    pub fn as_slice(&self) -> &[ExposedSlot] {
        &self.0
    }

    fn find(&self, xid: u32) -> Option<(usize, ExposedSlot)> {
        let mut places = self.0.iter().copied().enumerate();
        places.find(|(_, place)| place.xid() == Some(xid))
    }

    fn set(&mut self, index: usize, to: ExposedSlot) {
        if let Some(place) = self.0.get_mut(index) {
            *place = to;
        }
    }
}

/// When a release is overdue that is under way.
fn due(place: &ExposedSlot, grace: u64) -> Option<u64> {
    match *place {
        ExposedSlot::Ending { since } => since.map(|since| since.saturating_add(grace)),
        ExposedSlot::Expiring { since, .. } => Some(since.saturating_add(grace)),
        _ => None,
    }
}
