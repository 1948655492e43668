// SPDX-License-Identifier: GPL-2.0

//! Memory regions by which a requester exposes memory to its peer, one life after another:
//!
//!     idle --map--> Mapped --post, with the Send--> Registered --invalidated, by either end--> idle
//!
//! Only a registered region has a handle that the peer can use; only an invalid one is unmapped. A
//! registered region that is dropped instead, because the connection is lost, is never used again: it
//! stays mapped until the queue pair is gone.
//!
//! Handles and offsets are random (RFC 8166 Section 8.1.2): a region is no more open to who has seen
//! its predecessors.

use super::domain::Domain;
use super::fence::Fenced;
use super::list::Chain;
use super::list::Link;
use super::list::Linked;
use super::list::Stack;
use crate::admin::trace;
use crate::admin::trace::trace;
use crate::bindings;
use crate::bindings::piece::Piece;
use crate::bindings::piece::PAGE;
use core::marker::PhantomData;
use core::mem;
use core::mem::MaybeUninit;
use core::ptr;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::sync::Arc;

/// What the peer may do with a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read it.
    Read,
    /// Write it.
    Write,
}

/// A region as the peer is told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposed {
    /// The tag.
    pub(crate) handle: u32,
    /// Octets.
    pub(crate) length: u32,
    /// The address, in the terms of the tag.
    pub(crate) offset: u64,
}

/// Why memory was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapError {
    /// All regions are in use; more can be made.
    Exhausted,
    /// The device cannot map the memory.
    Failed,
}

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

/// One region.
#[repr(C)]
pub(super) struct Region<U> {
    /// In the list of those that are idle.
    idle: Link,
    /// In the list of all of a pool.
    all: Link,
    /// In [`Regions`].
    next: Option<NonNull<Region<U>>>,
    mr: NonNull<bindings::ib_mr>,
    sgs: KVec<bindings::scatterlist>,
    /// How many of `sgs` are mapped for the device; 0 if none.
    mapped: c_int,
    access: Access,
    exposed: Exposed,
    pub(super) reg: bindings::ib_reg_wr,
    pub(super) reg_cqe: bindings::ib_cqe,
    pub(super) inv: bindings::ib_send_wr,
    pub(super) inv_cqe: bindings::ib_cqe,
    /// For the last of a chain that is being invalidated: its first, and what waits for it.
    pub(super) chain: Option<NonNull<Region<U>>>,
    pub(super) token: MaybeUninit<U>,
    pool: NonNull<RegionPool<U>>,
}

/// A region that nobody uses.
///
/// # Invariants
///
/// Nobody else uses the region, which its pool keeps.
struct Idle<U>(NonNull<Region<U>>);

// SAFETY: Whoever has it may use the region.
unsafe impl<U: Send> Send for Idle<U> {}

// SAFETY: The pool keeps the region in place; `idle` is only touched by who has it.
unsafe impl<U> Linked for Idle<U> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        // `idle` is the first member.
        self.0.cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // INVARIANT: By this function's contract.
        Self(link.cast())
    }
}

/// The pool's share in a region, which frees it.
///
/// # Invariants
///
/// From `KBox`; nobody uses the region once this is dropped.
struct Owned<U>(NonNull<Region<U>>);

// SAFETY: A region is not bound to a thread.
unsafe impl<U: Send> Send for Owned<U> {}

// SAFETY: `all` is only touched by the list of all regions.
unsafe impl<U> Linked for Owned<U> {
    fn into_link(self) -> NonNull<Link> {
        // SAFETY: A valid region; the pointer stays inside of it.
        unsafe { NonNull::new_unchecked(&raw mut (*mem::ManuallyDrop::new(self).0.as_ptr()).all) }
    }

    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract, `link` is the `all` of a region.
        let region = unsafe { kernel::container_of!(link.as_ptr(), Region<U>, all) };
        // INVARIANT: As when it was given up.
        // SAFETY: Around a valid pointer, hence not null.
        Self(unsafe { NonNull::new_unchecked(region) })
    }
}

impl<U> Drop for Owned<U> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants; the pool, and so the domain, is still there.
        unsafe {
            self.0.as_mut().unmap();
            bindings::ib_dereg_mr_user(self.0.as_ref().mr.as_ptr(), ptr::null_mut());
            drop(KBox::from_raw(self.0.as_ptr()));
        }
    }
}

impl<U> Region<U> {
    #[inline]
    fn device(&self) -> *mut bindings::ib_device {
        // SAFETY: The pool keeps its regions, not the other way round: it is there.
        unsafe { self.pool.as_ref() }.domain.device()
    }

    /// For traces.
    fn traced(&self) -> trace::Region {
        trace::Region {
            mr_id: self.id(),
            nents: self.mapped.cast_unsigned(),
            handle: self.exposed.handle,
            length: self.exposed.length,
            offset: self.exposed.offset,
            dir: direction(self.access).cast_unsigned(),
        }
    }

    /// What names the region in traces.
    pub(super) fn id(&self) -> u32 {
        // SAFETY: The memory region is there as long as this.
        unsafe { self.mr.as_ref() }.res.id
    }

    fn unmap(&mut self) {
        if self.mapped != 0 {
            trace!(xprtrdma_mr_unmap(&self.traced()));
            // SAFETY: Mapped with these arguments; the number is that of entries, not of runs.
            unsafe {
                bindings::rpcrdma_dma_unmap_sg(
                    self.device(),
                    self.sgs.as_mut_ptr(),
                    self.mapped,
                    direction(self.access),
                )
            };
            self.mapped = 0;
        }
    }

    /// Describes the pieces from the front of `pieces` that one region can cover, starting with
    /// `first`; returns how many, and the one after them.
    #[inline]
    fn fill<'p>(
        &mut self,
        first: Piece<'p>,
        pieces: &mut impl Iterator<Item = Piece<'p>>,
        gaps: bool,
    ) -> (usize, Option<Piece<'p>>) {
        let mut count = 0;
        let mut piece = first;
        for sg in self.sgs.iter_mut() {
            set_page(sg, &piece);
            count += 1;
            let Some(next) = pieces.next() else {
                return (count, None);
            };
            let adjoins = piece.ends_page() && next.offset() == 0;
            piece = next;
            if !gaps && !adjoins {
                break;
            }
        }
        (count, Some(piece))
    }

    /// Maps what was described by the first `count` entries.
    #[inline]
    fn map(&mut self, count: usize, access: Access) -> Result<(), MapError> {
        // CAST: No more than the region's depth, which the device counts in 32 bits.
        let entries = count as c_int;
        // SAFETY: As many entries are filled in; the memory stays until the region is unmapped, by the
        // contract of `Piece`.
        let runs = unsafe {
            bindings::rpcrdma_dma_map_sg(
                self.device(),
                self.sgs.as_mut_ptr(),
                entries,
                direction(access),
            )
        };
        if runs <= 0 {
            let dir = direction(access).cast_unsigned();
            trace!(xprtrdma_frwr_sgerr(self.id(), 0, dir, entries));
            return Err(MapError::Failed);
        }
        self.mapped = entries;
        self.access = access;
        let mr = self.mr.as_ptr();
        // SAFETY: The region is idle, so that its memory region is ours.
        let covered = unsafe {
            bindings::ib_map_mr_sg(mr, self.sgs.as_mut_ptr(), runs, ptr::null_mut(), PAGE)
        };
        if covered != runs {
            let dir = direction(access).cast_unsigned();
            trace!(xprtrdma_frwr_maperr(self.id(), 0, dir, covered, runs));
            return Err(MapError::Failed);
        }
        // SAFETY: Always possible.
        let random = unsafe { bindings::get_random_u64() };
        // SAFETY: As above.
        unsafe {
            // The offset within the page means something to the device, the rest nothing to anybody.
            // Far from the end of the address space, so that nothing wraps.
            let place = u64::from(PAGE) - 1;
            (*mr).iova = ((random >> 2) & !place) | ((*mr).iova & place);
            // The last octet of a handle is the user's to choose. Not the one it had.
            let step = 1 + (random & 0xff) as u8 % 0xff;
            let key = ((*mr).rkey as u8).wrapping_add(step);
            (*mr).lkey = ((*mr).lkey & !0xff) | u32::from(key);
            (*mr).rkey = ((*mr).rkey & !0xff) | u32::from(key);
            self.reg.key = (*mr).rkey;
            self.reg.access = rights(access);
            self.exposed = Exposed {
                handle: (*mr).rkey,
                // CAST: At most `depth` pages.
                length: (*mr).length as u32,
                offset: (*mr).iova,
            };
        }
        Ok(())
    }
}

#[inline]
fn direction(access: Access) -> bindings::dma_data_direction {
    match access {
        Access::Read => bindings::dma_data_direction_DMA_TO_DEVICE,
        Access::Write => bindings::dma_data_direction_DMA_FROM_DEVICE,
    }
}

#[inline]
fn rights(access: Access) -> c_int {
    let rights = match access {
        Access::Read => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
        // The specification of memory regions wants the one with the other.
        Access::Write => {
            bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
        }
    };
    rights.cast_signed()
}

#[inline]
fn set_page(sg: &mut bindings::scatterlist, piece: &Piece<'_>) {
    /// The low bits of the word say whether the entry is the last of a list.
    const MARKS: usize = 0x3;
    sg.page_link = (sg.page_link & MARKS) | piece.page().addr();
    sg.offset = piece.offset();
    sg.length = piece.len();
}

/// The regions of one connection. It keeps them until the last of what they are used by is gone.
pub(crate) struct RegionPool<U> {
    /// Put here by whoever is done with one. Goes before `all`, to which they belong.
    idle: Stack<Idle<U>>,
    all: Stack<Owned<U>>,
    depth: u32,
    gaps: bool,
    reg_done: Done,
    domain: Arc<Domain>,
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
                access: Access::Read,
                exposed: Exposed {
                    handle: 0,
                    length: 0,
                    offset: 0,
                },
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
    head: Option<NonNull<Region<U>>>,
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

    /// Takes out the region that the peer says it has invalidated; `false` if it is not one of these.
    pub(crate) fn invalidated_remotely(&mut self, handle: u32) -> bool {
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
    pub(super) fn into_chain(self) -> Option<(NonNull<Region<U>>, NonNull<Region<U>>)> {
        // Dropping registered regions only drops the reference to their pool.
        Some((self.head?, self.tail?))
    }
}

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

impl<U> Region<U> {
    /// The region after this one in a chain.
    #[inline]
    pub(super) fn next(&self) -> Option<NonNull<Self>> {
        self.next
    }

    /// The tag.
    #[inline]
    pub(super) fn handle(&self) -> u32 {
        self.exposed.handle
    }
}

impl<S: State, U> Drop for Regions<S, U> {
    fn drop(&mut self) {
        if !S::REUSABLE {
            // The peer may still reach them. The pool keeps them, and ends them after the queue pair.
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
