// SPDX-License-Identifier: GPL-2.0

//! The state of exposed Replies, which the client pulls.
//!
//! ```text
//!           expose            done                    released
//!     Free --------> Exposed ------> Ending ---------------------> Free
//!                       |              ^                             ^
//!                       |              | done                        |
//!                       | expired      |     released                | done
//!                       +--------> Expiring --------> Owed ----------+
//! ```
//!
//! If a Reply is not sent after all, its slot is withdrawn and is free again.
//!
//! A Reply has a slot until its memory has been invalidated *and* its RDMA_DONE has arrived. An
//! RDMA_DONE takes no credit. Instead, the server posts one Receive per slot in addition to those
//! for credits, so that a Receive is available for every RDMA_DONE, however late it arrives.
//!
//! A client that sends no RDMA_DONE runs out of slots, and then gets ERR_CHUNK in place of a Reply
//! to pull. It cannot exhaust the server's memory, which is released when the deadline of the Reply
//! expires. The release waits for an invalidation, which may wait for the client. A release that
//! takes too long is [overdue](ExposedSlots::is_overdue), and the caller closes the connection.
//!
//! Time is a monotonic number in the unit of the caller.

use core::ops::DerefMut;

/// One slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExposedSlot {
    /// No Reply has the slot.
    #[default]
    Free,
    /// A Reply is exposed.
    Exposed {
        /// XID of the Reply.
        xid: u32,
        /// Time at which the Reply expires. `None` until its Send is posted.
        deadline: Option<u64>,
    },
    /// The RDMA_DONE has arrived. The memory is being released.
    Ending {
        /// Time from which the release may become overdue: the deadline, or when the Reply expired.
        /// `None` until the Send is posted.
        since: Option<u64>,
    },
    /// The deadline has passed and no RDMA_DONE has arrived. The memory is being released.
    Expiring {
        /// XID of the Reply.
        xid: u32,
        /// Time at which the caller found the Reply expired.
        since: u64,
    },
    /// The memory has been released and no RDMA_DONE has arrived.
    Owed {
        /// XID of the Reply.
        xid: u32,
    },
}

impl ExposedSlot {
    /// The XID of the Reply whose RDMA_DONE has not arrived.
    fn xid(&self) -> Option<u32> {
        match *self {
            Self::Exposed { xid, .. } | Self::Expiring { xid, .. } | Self::Owed { xid } => {
                Some(xid)
            }
            Self::Free | Self::Ending { .. } => None,
        }
    }
}

/// Why a Reply cannot be exposed. The Call is answered with ERR_CHUNK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotExposed {
    /// No slot is free.
    Full,
    /// A Reply with the same XID has a slot, so an RDMA_DONE would be ambiguous.
    SameXid,
}

/// The slots of one connection, in memory of the caller.
#[derive(Debug)]
pub struct ExposedSlots<S>(S);

impl<S: DerefMut<Target = [ExposedSlot]>> ExposedSlots<S> {
    /// Makes all of `slots` free.
    pub fn new(mut slots: S) -> Self {
        slots.fill(ExposedSlot::Free);
        Self(slots)
    }

    /// Takes a slot for a Reply; returns its index.
    ///
    /// Unless the connection ends first, the caller then either exposes the Reply and calls
    /// [`Self::set_deadline`], or calls [`Self::withdraw`].
    ///
    /// # Errors
    ///
    /// See [`NotExposed`].
    pub fn expose(&mut self, xid: u32) -> Result<usize, NotExposed> {
        let mut free = None;
        for (index, slot) in self.0.iter().enumerate() {
            if slot.xid() == Some(xid) {
                return Err(NotExposed::SameXid);
            }
            if *slot == ExposedSlot::Free {
                free = free.or(Some(index));
            }
        }
        let index = free.ok_or(NotExposed::Full)?;
        let deadline = None;
        self.set(index, ExposedSlot::Exposed { xid, deadline });
        Ok(index)
    }

    /// Sets the deadline of a Reply whose Send has been posted. Returns `false` if the Reply is no
    /// longer exposed.
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

    /// Frees the slot of a Reply that has not been sent.
    pub fn withdraw(&mut self, index: usize) {
        self.set(index, ExposedSlot::Free);
    }

    /// Handles an RDMA_DONE. Returns the index of the slot whose memory the caller must release.
    /// `None` if the release has begun, or if no slot has this XID.
    pub fn done(&mut self, xid: u32) -> Option<usize> {
        let (index, slot) = self.find(xid)?;
        let (next, release) = match slot {
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

    /// The XID of the Reply in a slot whose RDMA_DONE has not arrived.
    pub fn xid(&self, index: usize) -> Option<u32> {
        self.0.get(index)?.xid()
    }

    /// Expires a Reply whose deadline has passed. Returns the index of its slot, whose memory the
    /// caller must release. The caller repeats this until the result is `None`.
    pub fn expired(&mut self, now: u64) -> Option<usize> {
        let expired = |slot: &ExposedSlot| match *slot {
            ExposedSlot::Exposed {
                xid,
                deadline: Some(deadline),
            } => (deadline <= now).then_some(xid),
            _ => None,
        };
        let mut slots = self.0.iter().enumerate();
        let (index, xid) = slots.find_map(|(index, slot)| Some((index, expired(slot)?)))?;
        self.set(index, ExposedSlot::Expiring { xid, since: now });
        Some(index)
    }

    /// Whether the memory of a Reply is still being released `grace` after its deadline. Only the
    /// end of the connection then releases it.
    pub fn is_overdue(&self, now: u64, grace: u64) -> bool {
        let mut slots = self.0.iter();
        slots.any(|slot| overdue_at(slot, grace).is_some_and(|at| at <= now))
    }

    /// Handles the end of a release: the client can no longer access the memory of the Reply.
    pub fn released(&mut self, index: usize) {
        let next = match self.0.get(index) {
            Some(&ExposedSlot::Expiring { xid, .. }) => ExposedSlot::Owed { xid },
            _ => ExposedSlot::Free,
        };
        self.set(index, next);
    }

    /// Time at which the next Reply expires or the next release becomes overdue. `None` if neither
    /// is pending.
    pub fn next_check(&self, grace: u64) -> Option<u64> {
        let times = self.0.iter().filter_map(|slot| match *slot {
            ExposedSlot::Exposed { deadline, .. } => deadline,
            _ => overdue_at(slot, grace),
        });
        times.min()
    }

    /// The slots.
    #[allow(dead_code, reason = "host tests compare a model with it")]
    pub fn as_slice(&self) -> &[ExposedSlot] {
        &self.0
    }

    fn find(&self, xid: u32) -> Option<(usize, ExposedSlot)> {
        let mut slots = self.0.iter().copied().enumerate();
        slots.find(|(_, slot)| slot.xid() == Some(xid))
    }

    fn set(&mut self, index: usize, to: ExposedSlot) {
        if let Some(slot) = self.0.get_mut(index) {
            *slot = to;
        }
    }
}

/// Time at which the release of a slot's memory becomes overdue. `None` if there is no release.
fn overdue_at(slot: &ExposedSlot, grace: u64) -> Option<u64> {
    match *slot {
        ExposedSlot::Ending { since } => since.map(|since| since.saturating_add(grace)),
        ExposedSlot::Expiring { since, .. } => Some(since.saturating_add(grace)),
        _ => None,
    }
}
