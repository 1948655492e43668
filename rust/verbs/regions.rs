// SPDX-License-Identifier: GPL-2.0

//! Memory regions by which either end exposes memory to its peer, one life after another:
//!
//!     idle --map--> Mapped --post, with the Send--> Registered --invalidated, by either end--> idle
//!
//! Only a registered region has a handle that the peer can use; only an invalid one is unmapped. A
//! registered region that is dropped instead, because the connection is lost, is never used again: it
//! is unmapped when the queue pair has ended, before its memory is used for anything else.
//!
//! Handles and offsets are random (RFC 8166 Section 8.1.2): a region is no more open to who has seen
//! its predecessors.

use super::domain::Domain;
use super::endpoint::Context;
use super::endpoint::Endpoint;
use super::endpoint::Kept;
use super::fence::Fenced;
use super::list::Chain;
use super::list::Link;
use super::list::Stack;
use super::region::Access;
use super::region::Exposed;
use super::region::Idle;
use super::region::MapError;
use super::region::Owned;
use super::region::Region;
use super::tags::GivenOut;
use crate::admin::trace;
use crate::admin::trace::trace;
use crate::bindings;
use crate::bindings::piece::Piece;
use core::marker::PhantomData;
use core::mem;
use core::mem::MaybeUninit;
use core::ptr;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::Arc;

/// State of regions that are mapped for the device, but have no handle yet.
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

/// The regions of one connection. It keeps them until the last of what they are used by is gone.
pub(crate) struct RegionPool<U> {
    /// Put here by whoever is done with one. Goes before `all`, to which they belong.
    idle: Stack<Idle<U>>,
    pub(super) all: Stack<Owned<U>>,
    depth: u32,
    gaps: bool,
    reg_done: Done,
    pub(super) domain: Arc<Domain>,
}

/// A completion handler.
pub(super) type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

impl<U: Send + 'static> RegionPool<U> {
    /// A pool without regions; each will cover `depth` pages, with gaps between them if the device
    /// can do that. `reg_done` handles registrations that did not succeed.
    pub(super) fn new(
        domain: &Arc<Domain>,
        depth: u32,
        gaps: bool,
        reg_done: Done,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                idle: Stack::new(),
                all: Stack::new(),
                depth,
                gaps,
                reg_done,
                domain: domain.clone(),
            },
            GFP_KERNEL,
        )?)
    }

    /// Makes up to `count` more regions; returns how many. Sleeps, and asks for memory like anybody:
    /// not for who must not wait for another RPC.
    pub(crate) fn grow(&self, count: u32) -> u32 {
        (0..count)
            .take_while(|_| match self.make() {
                Ok(region) => {
                    self.idle.push(region);
                    true
                }
                Err(error) => {
                    trace!(xprtrdma_frwr_alloc(0, error.to_errno()));
                    false
                }
            })
            .fold(0, |made, _| made + 1)
    }

    fn make(&self) -> Result<Idle<U>> {
        let depth = self.depth as usize;
        let mut sgs = KVec::from_elem(bindings::scatterlist::default(), depth, GFP_KERNEL)?;
        // SAFETY: An array of that many entries.
        unsafe { bindings::sg_init_table(sgs.as_mut_ptr(), self.depth) };
        let kind = match self.gaps {
            true => bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS,
            false => bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
        };
        // SAFETY: The domain is there.
        let mr =
            from_err_ptr(unsafe { bindings::ib_alloc_mr(self.domain.pd(), kind, self.depth) })?;
        let mr = NonNull::new(mr).ok_or(ENOMEM)?;
        let region = KBox::new(
            Region {
                idle: Link::new(),
                all: Link::new(),
                next: None,
                mr,
                sgs,
                mapped: 0,
                held: false,
                access: Access::Read,
                exposed: Exposed {
                    handle: 0,
                    length: 0,
                    offset: 0,
                },
                given_out: GivenOut::never(),
                reg: pin_init::zeroed(),
                reg_cqe: bindings::ib_cqe {
                    done: Some(self.reg_done),
                },
                inv: pin_init::zeroed(),
                inv_cqe: bindings::ib_cqe { done: None },
                chain: None,
                token: MaybeUninit::uninit(),
                pool: NonNull::from(self),
            },
            GFP_KERNEL,
        )
        .inspect_err(|_| {
            // SAFETY: Just made, and nobody's.
            unsafe { bindings::ib_dereg_mr_user(mr.as_ptr(), ptr::null_mut()) };
        })?;
        let region = NonNull::from(KBox::leak(region));
        let p = region.as_ptr();
        // What never changes in its work requests. The cells are part of the region, which does not
        // move.
        // SAFETY: Ours alone.
        unsafe {
            (*p).reg.mr = mr.as_ptr();
            (*p).reg.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
            *(*p).reg.wr.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*p).reg_cqe;
            (*p).inv.opcode = bindings::ib_wr_opcode_IB_WR_LOCAL_INV;
            *(*p).inv.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*p).inv_cqe;
        }
        // INVARIANT: From `KBox`; the pool drops this after all who use the region.
        self.all.push(Owned(region));
        // INVARIANT: Just made.
        Ok(Idle(region))
    }
}

impl<U> RegionPool<U> {
    /// Takes back a region that the peer cannot reach.
    ///
    /// # Safety
    ///
    /// `region` is the caller's, of this pool, and it is not registered.
    #[inline]
    unsafe fn put_back(&self, region: NonNull<Region<U>>) {
        // SAFETY: By this function's contract.
        unsafe { (*region.as_ptr()).unmap() };
        // INVARIANT: The caller gives it up.
        self.idle.push(Idle(region));
    }
}

impl<U: Send + 'static> Kept for Arc<RegionPool<U>> {
    /// Unmaps what is still mapped: its memory belongs to RPCs that are about to be sent again, or that
    /// were given up.
    fn queues_ended(&self) {
        // SAFETY: Nothing is taken out of the list of all before the pool ends.
        for link in unsafe { self.all.links() } {
            // SAFETY: The link is the `all` of a region, which stays as long as the pool. Nobody else
            // uses those that are mapped: no handler runs any more, and nobody sends.
            unsafe {
                let region = kernel::container_of!(link.as_ptr(), Region<U>, all);
                (*region).unmap();
            }
        }
    }
}

/// Maps memory. There is one for each connection, with who sends.
pub(crate) struct Registrar<U> {
    /// At hand, so that taking one needs no lock. Goes before the pool, which keeps the regions.
    at_hand: Chain<Idle<U>>,
    pool: Arc<RegionPool<U>>,
}

impl<U> Registrar<U> {
    pub(super) fn new(pool: Arc<RegionPool<U>>) -> Self {
        Self {
            pool,
            at_hand: Chain::new(),
        }
    }

    /// The regions' pool.
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<RegionPool<U>> {
        &self.pool
    }

    #[inline]
    fn take(&mut self) -> Option<NonNull<Region<U>>> {
        if self.at_hand.is_empty() {
            self.at_hand = self.pool.idle.take_all();
        }
        self.at_hand.pop().map(|idle| idle.0)
    }

    /// Maps `pieces`, with as many regions as that takes, at the end of `regions`. Returns how many
    /// it took.
    ///
    /// # Errors
    ///
    /// See [`MapError`]. What has been mapped until then is in `regions`.
    #[inline]
    pub(crate) fn map<'p>(
        &mut self,
        pieces: impl IntoIterator<Item = Piece<'p>>,
        access: Access,
        regions: &mut Regions<Mapped, U>,
    ) -> Result<u32, MapError> {
        let before = regions.len;
        let mut pieces = pieces.into_iter();
        let mut next = pieces.next();
        if next.is_some() && regions.pool.is_none() {
            regions.pool = Some(self.pool.clone());
        }
        while let Some(first) = next {
            let region = self.take().ok_or(MapError::Exhausted)?;
            // INVARIANT: The region was idle, hence ours.
            regions.push(region);
            // SAFETY: In `regions`, which is ours.
            let region = unsafe { &mut *region.as_ptr() };
            let (count, after) = region.fill(first, &mut pieces, self.pool.gaps);
            region.map(count, access)?;
            next = after;
        }
        Ok(regions.len - before)
    }
}

/// Regions in order, all in the state `S`.
///
/// # Invariants
///
/// From `head` through `next` to `tail` there are `len` regions of `pool`, which nobody else uses. There
/// is a pool if there are regions.
pub(crate) struct Regions<S: State, U> {
    pool: Option<Arc<RegionPool<U>>>,
    pub(super) head: Option<NonNull<Region<U>>>,
    tail: Option<NonNull<Region<U>>>,
    len: u32,
    _state: PhantomData<S>,
}

// SAFETY: Regions are not bound to a thread.
unsafe impl<S: State, U: Send> Send for Regions<S, U> {}
// SAFETY: A shared reference only reads.
unsafe impl<S: State, U: Send> Sync for Regions<S, U> {}

impl<S: State, U> Regions<S, U> {
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
    pub(crate) fn exposed(&self) -> ExposedRegions<'_, U> {
        ExposedRegions {
            next: self.head,
            _regions: PhantomData,
        }
    }

    /// The regions as traces tell of them, in order.
    pub(crate) fn traced(&self) -> impl Iterator<Item = trace::Region> + '_ {
        let mut next = self.head;
        core::iter::from_fn(move || {
            // SAFETY: In the list, which is borrowed.
            let region = unsafe { next?.as_ref() };
            next = region.next;
            Some(region.traced())
        })
    }

    #[inline]
    fn push(&mut self, region: NonNull<Region<U>>) {
        // SAFETY: The caller gives it to us.
        unsafe { (*region.as_ptr()).next = None };
        match self.tail {
            // SAFETY: In the list.
            Some(tail) => unsafe { (*tail.as_ptr()).next = Some(region) },
            None => self.head = Some(region),
        }
        // INVARIANT: One more, at the end.
        self.tail = Some(region);
        self.len += 1;
    }

    /// The protection domain that the regions belong to, if there are any.
    #[inline]
    pub(super) fn domain(&self) -> Option<&Arc<Domain>> {
        self.pool.as_ref().map(|pool| &pool.domain)
    }
}

impl<U> Regions<Mapped, U> {
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

    /// Keeps the pages until the regions are unmapped, for memory that its owner may free while the peer
    /// can reach it.
    #[cold]
    pub(crate) fn hold(&mut self) {
        let mut next = self.head;
        while let Some(region) = next {
            // SAFETY: In the list, which is ours.
            let region = unsafe { &mut *region.as_ptr() };
            region.hold();
            next = region.next;
        }
    }

    /// Puts the registrations in front of `send`, and counts them as done: they are posted together,
    /// or not at all.
    ///
    /// # Safety
    ///
    /// `send` stays in place as long as the chain, whose first work request is returned, is used; the
    /// regions do so while the pool does.
    #[inline]
    pub(super) unsafe fn register(
        self,
        send: *mut bindings::ib_send_wr,
    ) -> (*mut bindings::ib_send_wr, Regions<Registered, U>) {
        let this = mem::ManuallyDrop::new(self);
        let registered = Regions {
            // SAFETY: Not dropped, so that the reference is moved, not copied.
            pool: unsafe { ptr::read(&this.pool) },
            head: this.head,
            tail: this.tail,
            len: this.len,
            _state: PhantomData,
        };
        let mut first = send;
        let mut next = this.head;
        while let Some(region) = next {
            let p = region.as_ptr();
            // SAFETY: In the list.
            unsafe {
                (*p).reg.wr.next = first;
                first = &raw mut (*p).reg.wr;
                next = (*p).next;
            }
        }
        (first, registered)
    }
}

impl<U> Regions<Registered, U> {
    /// Proof that nothing is exposed, if there is nothing that could be.
    #[inline]
    pub(crate) fn fenced(self) -> Result<Fenced, Self> {
        match self.is_empty() {
            true => Ok(Fenced::nothing_exposed()),
            false => Err(self),
        }
    }

    /// Takes out the region that the peer says it has invalidated; `false` if it is not one of these. On
    /// iWARP it stays, to be invalidated here.
    pub(crate) fn invalidated_remotely<C: Context>(
        &mut self,
        ep: &Endpoint<C>,
        handle: u32,
    ) -> bool {
        if !ep.invalidates_in_order() {
            return self.exposed().any(|exposed| exposed.handle == handle);
        }
        let mut before: Option<NonNull<Region<U>>> = None;
        let mut next = self.head;
        while let Some(region) = next {
            // SAFETY: In the list.
            let p = unsafe { &mut *region.as_ptr() };
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
                unsafe { p.pool.as_ref().put_back(region) };
                return true;
            }
            before = Some(region);
        }
        false
    }

    /// Gives up the regions, to be invalidated: the chain's first and last. `None` if there is none.
    ///
    /// Nothing keeps their pool for the caller.
    #[inline]
    pub(super) fn into_chain(self) -> Option<Ends<U>> {
        // Dropping registered regions only drops the reference to their pool.
        Some((self.head?, self.tail?))
    }
}

/// The first and the last region of a chain.
pub(super) type Ends<U> = (NonNull<Region<U>>, NonNull<Region<U>>);

/// Takes back regions that have been invalidated, from `first` through `next` to the last.
///
/// # Safety
///
/// The regions are the caller's, invalid, and their pool is there.
#[inline]
pub(super) unsafe fn reclaim<U>(first: NonNull<Region<U>>) {
    let mut next = Some(first);
    while let Some(region) = next {
        // SAFETY: By this function's contract. The link is read before the region is given up.
        unsafe {
            next = region.as_ref().next;
            let pool = region.as_ref().pool;
            pool.as_ref().put_back(region);
        }
    }
}

/// Gives up regions of a queue pair that has ended: unmaps them, and leaves it at that. From `first`
/// through `next` to the last.
///
/// # Safety
///
/// The regions are the caller's, their pool is there, and their queue pair answers nobody any more.
#[cold]
pub(super) unsafe fn retire<U>(first: NonNull<Region<U>>) {
    let mut next = Some(first);
    while let Some(region) = next {
        // SAFETY: By this function's contract.
        unsafe {
            next = region.as_ref().next;
            (*region.as_ptr()).unmap();
        }
    }
}

impl<S: State, U> Drop for Regions<S, U> {
    fn drop(&mut self) {
        if !S::REUSABLE {
            // The peer may still reach them. The pool keeps them, and unmaps them after the queue pair.
            return;
        }
        let mut next = self.head;
        while let Some(region) = next {
            // SAFETY: In the list, and not registered; the pool is there.
            unsafe {
                next = region.as_ref().next;
                let pool = region.as_ref().pool;
                pool.as_ref().put_back(region);
            }
        }
    }
}

/// Iterator over regions as the peer is told of them.
pub(crate) struct ExposedRegions<'a, U> {
    next: Option<NonNull<Region<U>>>,
    _regions: PhantomData<&'a Region<U>>,
}

impl<U> Clone for ExposedRegions<'_, U> {
    fn clone(&self) -> Self {
        Self {
            next: self.next,
            _regions: PhantomData,
        }
    }
}

impl<U> Iterator for ExposedRegions<'_, U> {
    type Item = Exposed;

    #[inline]
    fn next(&mut self) -> Option<Exposed> {
        // SAFETY: In the list, which is borrowed.
        let region = unsafe { self.next?.as_ref() };
        self.next = region.next;
        Some(region.exposed)
    }
}
