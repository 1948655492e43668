// SPDX-License-Identifier: GPL-2.0

//! Memory regions by which either end exposes memory to its peer, one life after another:
//!
//! ```text
//! idle --map--> Mapped --post, with the Send--> Registered --invalidated by either end--> idle
//! ```
//!
//! The peer can use the handle of a registered region only; only an invalid one is unmapped. A
//! registered region that is dropped instead, because the connection is lost, is never used again:
//! it is unmapped when the queue pair has ended, before its memory is used for anything else.
//!
//! Handles and offsets are random (RFC 8166 Section 8.1.2): a region is no more open to those who
//! have seen its predecessors.

use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    trace,
    verbs::{
        device::pd::Pd,
        endpoint::{
            ep::Endpoint,
            ops::EndpointOps, //
        }, //
    }, //
};

use super::{
    fence::Fenced,
    frwr::{
        Exposed,
        Idle,
        Mr, //
    },
    mr_pool::{
        reclaim,
        MrPool, //
    }, //
};

/// State of regions that are mapped for the device. Their handles are chosen, but the device does
/// not know them yet.
pub(crate) struct Mapped;
/// State of regions that the peer may be able to reach.
pub(crate) struct Registered;

/// A state of regions.
pub(crate) trait State {
    /// Whether a region in this state is good for another use as soon as it is unmapped.
    const REUSABLE: bool;
}

impl State for Mapped {
    const REUSABLE: bool = true;
}

impl State for Registered {
    const REUSABLE: bool = false;
}

/// Regions in order, all in the state `S`.
///
/// # Invariants
///
/// From `head` through `next` to `tail` there are `len` regions of `pool`, which nobody else uses.
/// There is a pool if there are regions.
pub(crate) struct MrList<S: State, U> {
    pool: Option<Arc<MrPool<U>>>,
    pub(in crate::verbs) head: Option<NonNull<Mr<U>>>,
    tail: Option<NonNull<Mr<U>>>,
    len: u32,
    _state: PhantomData<S>,
}

// SAFETY: Regions are not bound to a thread.
unsafe impl<S: State, U: Send> Send for MrList<S, U> {}
// SAFETY: A shared reference only reads.
unsafe impl<S: State, U: Send> Sync for MrList<S, U> {}

impl<S: State, U> MrList<S, U> {
    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The regions as the peer is told of them, in order.
    #[inline]
    pub(crate) fn exposed(&self) -> ExposedMrs<'_, U> {
        ExposedMrs {
            next: self.head,
            _mrs: PhantomData,
        }
    }

    /// The regions as traces tell of them, in order.
    pub(crate) fn traced(&self) -> impl Iterator<Item = trace::Mr> + '_ {
        // SAFETY: In the list, which is borrowed.
        let mrs = unsafe { Mr::chain_from(self.head) };
        // SAFETY: As above.
        mrs.map(|mr| unsafe { mr.as_ref() }.traced())
    }

    /// The protection domain that the regions belong to, if there are any.
    #[inline]
    pub(in crate::verbs) fn pd(&self) -> Option<&Arc<Pd>> {
        self.pool.as_ref().map(|pool| &pool.pd)
    }
}

impl<U> MrList<Mapped, U> {
    /// No regions, to map some into.
    #[inline]
    pub(crate) const fn none() -> Self {
        // INVARIANT: An empty list.
        Self {
            pool: None,
            head: None,
            tail: None,
            len: 0,
            _state: PhantomData,
        }
    }

    /// Keeps `pool`, for regions of it that are added; `false` if there is another already.
    #[inline]
    pub(in crate::verbs) fn keep(&mut self, pool: &Arc<MrPool<U>>) -> bool {
        match &self.pool {
            None => {
                self.pool = Some(pool.clone());
                true
            }
            Some(own) => Arc::ptr_eq(own, pool),
        }
    }

    /// Adds a region at the end, to be mapped there.
    ///
    /// # Safety
    ///
    /// The region is of the pool that is [kept](Self::keep).
    #[inline]
    pub(in crate::verbs) unsafe fn push(&mut self, idle: Idle<U>) -> &mut Mr<U> {
        let mr = idle.0;
        // SAFETY: It is idle, and given to us.
        unsafe { (*mr.as_ptr()).next = None };
        match self.tail {
            // SAFETY: In the list.
            Some(tail) => unsafe { (*tail.as_ptr()).next = Some(mr) },
            None => self.head = Some(mr),
        }
        // INVARIANT: One more of the pool, at the end.
        self.tail = Some(mr);
        self.len += 1;
        // SAFETY: In the list, which is ours, and borrowed.
        unsafe { &mut *mr.as_ptr() }
    }

    /// Takes all regions out, unmapped.
    pub(in crate::verbs) fn take_all(&mut self) -> impl Iterator<Item = Idle<U>> {
        let head = self.head.take();
        // INVARIANT: None is left.
        self.tail = None;
        self.len = 0;
        // SAFETY: Taken out of the list, hence the iterator's.
        unsafe { Mr::chain_from(head) }.map(|mr| {
            // SAFETY: As above.
            unsafe { (*mr.as_ptr()).unmap() };
            // INVARIANT: The iterator's, which gives it up here.
            Idle(mr)
        })
    }

    /// Keeps the pages until the regions are unmapped, for memory that its owner may free while the
    /// peer can reach it.
    #[cold]
    pub(crate) fn hold(&mut self) {
        // SAFETY: In the list.
        for mr in unsafe { Mr::chain_from(self.head) } {
            // SAFETY: In the list, which is ours.
            unsafe { (*mr.as_ptr()).hold() };
        }
    }

    /// Puts the registrations in front of `send`, and counts them as done. If the chain is refused
    /// the connection has to be ended: some of it may have been posted.
    ///
    /// # Safety
    ///
    /// `send` stays in place as long as the chain, whose first work request is returned, is used;
    /// the regions do so while the pool does.
    #[inline]
    pub(in crate::verbs) unsafe fn register(
        self,
        send: *mut bindings::ib_send_wr,
    ) -> (*mut bindings::ib_send_wr, MrList<Registered, U>) {
        let this = mem::ManuallyDrop::new(self);
        let registered = MrList {
            // SAFETY: Not dropped, so that the reference is moved, not copied.
            pool: unsafe { ptr::read(&this.pool) },
            head: this.head,
            tail: this.tail,
            len: this.len,
            _state: PhantomData,
        };
        let mut first = send;
        // SAFETY: In the list.
        for mr in unsafe { Mr::chain_from(this.head) } {
            let p = mr.as_ptr();
            // SAFETY: In the list.
            unsafe {
                (*p).reg.wr.next = first;
                first = &raw mut (*p).reg.wr;
            }
        }
        (first, registered)
    }
}

impl<U> MrList<Registered, U> {
    /// Proof that nothing is exposed, if there is nothing that could be.
    ///
    /// # Errors
    ///
    /// The regions, if there are any.
    #[inline]
    pub(crate) fn try_fence(self) -> Result<Fenced, Self> {
        if self.is_empty() {
            Ok(Fenced::nothing_exposed())
        } else {
            Err(self)
        }
    }

    /// Takes out the region that the peer says it has invalidated; `false` if it is not one of
    /// these. On iWARP it stays, to be invalidated here.
    pub(crate) fn take_invalidated<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        handle: u32,
    ) -> bool {
        if !ep.invalidates_in_order() {
            return self.exposed().any(|exposed| exposed.handle == handle);
        }
        let mut before: Option<NonNull<Mr<U>>> = None;
        let mut next = self.head;
        while let Some(mr) = next {
            // SAFETY: In the list.
            let p = unsafe { &mut *mr.as_ptr() };
            next = p.next;
            if p.exposed.handle == handle {
                match before {
                    // SAFETY: In the list.
                    Some(before) => unsafe { (*before.as_ptr()).next = next },
                    None => self.head = next,
                }
                if next.is_none() {
                    self.tail = before;
                }
                // INVARIANT: One less.
                self.len -= 1;
                // SAFETY: Out of the list, and invalid; the pool is there.
                unsafe { p.pool.as_ref().put_back(mr) };
                return true;
            }
            before = Some(mr);
        }
        false
    }

    /// Gives up the regions, to be invalidated: the chain's first and last. `None` if there is
    /// none.
    ///
    /// Nothing keeps their pool for the caller.
    #[inline]
    pub(in crate::verbs) fn into_chain(self) -> Option<Ends<U>> {
        // Dropping registered regions only drops the reference to their pool.
        Some((self.head?, self.tail?))
    }
}

/// The first and the last region of a chain.
pub(in crate::verbs) type Ends<U> = (NonNull<Mr<U>>, NonNull<Mr<U>>);

impl<S: State, U> Drop for MrList<S, U> {
    fn drop(&mut self) {
        if !S::REUSABLE {
            // The peer may still reach them. The pool keeps them, and unmaps them after the queue
            // pair.
            return;
        }
        if let Some(first) = self.head {
            // SAFETY: In the list, and not registered; the pool is there.
            unsafe { reclaim(first) };
        }
    }
}

/// Iterator over regions as the peer is told of them.
pub(crate) struct ExposedMrs<'a, U> {
    next: Option<NonNull<Mr<U>>>,
    _mrs: PhantomData<&'a Mr<U>>,
}

impl<U> Clone for ExposedMrs<'_, U> {
    fn clone(&self) -> Self {
        Self {
            next: self.next,
            _mrs: PhantomData,
        }
    }
}

impl<U> Iterator for ExposedMrs<'_, U> {
    type Item = Exposed;

    #[inline]
    fn next(&mut self) -> Option<Exposed> {
        // SAFETY: In the list, which is borrowed.
        let mr = unsafe { self.next?.as_ref() };
        self.next = mr.next;
        Some(mr.exposed)
    }
}
