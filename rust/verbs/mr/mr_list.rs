// SPDX-License-Identifier: GPL-2.0

//! The MRs of one message, by state:
//!
//! ```text
//! idle --map--> Mapped --post, with the Send--> Registered --invalidated by either end--> idle
//! ```
//!
//! The peer can use the rkey of a registered MR only. An MR is unmapped only once it is invalid. A
//! list of registered MRs that is dropped, because the connection is lost, leaves them registered;
//! [`MrPool::queues_ended`] unmaps them when the QP is gone, and they are not used again.
//!
//! Handles and offsets are random (RFC 8166 Section 8.1.2): an earlier rkey of an MR does not tell
//! the next.
//!
//! C: frwr_ops.c, frwr_send(), frwr_reminv(), frwr_reset()

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Range,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::sync::Arc;

use crate::{
    bindings,
    trace,
    verbs::{
        device::pd::Pd,
        endpoint::{
            completion::Done,
            ep::Endpoint,
            invalidated::Invalidated,
            ops::EndpointOps, //
        }, //
    }, //
};

use super::{
    ib_mr::Exposed,
    mr_alloc::{
        Mr,
        MrRef,
        Posted,
        Waiter, //
    },
    mr_pool::MrPool, //
};

/// MRs that are linked through `Own::next`, each owned by the one before it.
///
/// # Invariants
///
/// - I1: From `head` through `next` there are `len` MRs.
/// - I2: `tail` names the last of them, and is `None` if there is none.
struct MrChain<W> {
    head: Option<MrRef<W>>,
    tail: Option<NonNull<Mr<W>>>,
    len: u32,
}

// SAFETY: `tail` is used only with the chain's right to all of its MRs, which are `Send`.
unsafe impl<W: Send> Send for MrChain<W> {}

impl<W> MrChain<W> {
    const fn new() -> Self {
        // INVARIANT: No MRs.
        Self {
            head: None,
            tail: None,
            len: 0,
        }
    }

    /// Adds an MR at the end.
    #[inline]
    fn push(&mut self, mut mr: MrRef<W>) {
        mr.own_mut().next = None;
        let last = mr.as_ptr();
        match self.tail {
            None => self.head = Some(mr),
            Some(tail) => {
                // SAFETY: The last MR of the chain (I2), whose right is borrowed exclusively with
                // the chain; it is gone when the block ends.
                let mut tail = unsafe { MrRef::from_ptr(tail) };
                tail.own_mut().next = Some(mr);
            }
        }
        // INVARIANT: One more, at the end.
        self.tail = Some(last);
        self.len += 1;
    }

    /// Takes the first MR out.
    #[inline]
    fn pop(&mut self) -> Option<MrRef<W>> {
        let mut mr = self.head.take()?;
        // INVARIANT: The rest of the chain; without a head there is no tail.
        self.head = mr.own_mut().next.take();
        self.len -= 1;
        if self.head.is_none() {
            self.tail = None;
        }
        Some(mr)
    }

    /// Takes the MR with this rkey out.
    fn remove(&mut self, handle: u32) -> Option<MrRef<W>> {
        let mut before = None;
        let mut at = &mut self.head;
        while at.as_ref()?.own().exposed.handle != handle {
            let mr = at.as_mut()?;
            before = Some(mr.as_ptr());
            at = &mut mr.own_mut().next;
        }
        let mut mr = at.take()?;
        *at = mr.own_mut().next.take();
        // INVARIANT: One less; if it was the last one, the MR before it is the last now.
        if at.is_none() {
            self.tail = before;
        }
        self.len -= 1;
        Some(mr)
    }

    /// The MRs in order.
    #[inline]
    fn iter(&self) -> MrCursor<'_, W> {
        MrCursor(self.head.as_ref())
    }

    /// Walks along the MRs, to change each.
    #[inline]
    fn for_each(&mut self, mut f: impl FnMut(&mut MrRef<W>)) {
        let mut at = self.head.as_mut();
        while let Some(mr) = at {
            f(mr);
            at = mr.own_mut().next.as_mut();
        }
    }
}

/// Walks along the MRs of a chain that is borrowed.
struct MrCursor<'a, W>(Option<&'a MrRef<W>>);

impl<'a, W> Iterator for MrCursor<'a, W> {
    type Item = &'a MrRef<W>;

    #[inline]
    fn next(&mut self) -> Option<&'a MrRef<W>> {
        let mr = self.0?;
        self.0 = mr.own().next.as_ref();
        Some(mr)
    }
}

impl<W> Clone for MrCursor<'_, W> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

/// State of MRs that are mapped for the device. Their rkeys are chosen, but the device does not
/// know the rkeys yet. The memory stays throughout `'m`.
pub(crate) struct Mapped<'m>(PhantomData<&'m ()>);

/// State of MRs that the peer may be able to reach.
pub(crate) struct Registered;

/// A state of MRs.
pub(crate) trait State {
    /// Whether an MR in this state can be used again as soon as it is unmapped.
    const REUSABLE: bool;
}

impl State for Mapped<'_> {
    const REUSABLE: bool = true;
}

impl State for Registered {
    const REUSABLE: bool = false;
}

/// MRs in order, all in the state `S`.
///
/// # Invariants
///
/// - I1: All MRs are of `pool`, which is set if there are any.
/// - I2: The device does not know MRs in the state [`Mapped`] as valid.
pub(crate) struct MrList<S: State, W> {
    pool: Option<Arc<MrPool<W>>>,
    chain: MrChain<W>,
    _state: PhantomData<S>,
}

// SAFETY: A shared reference only reads what describes the MRs, which does not change meanwhile:
// that takes an exclusive one.
unsafe impl<S: State, W: Send> Sync for MrList<S, W> {}

impl<S: State, W> MrList<S, W> {
    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.chain.head.is_none()
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.chain.len
    }

    /// The MRs as the peer is told of them, in order.
    #[inline]
    pub(crate) fn exposed(&self) -> impl Iterator<Item = Exposed> + Clone + '_ {
        self.chain.iter().map(|mr| mr.own().exposed)
    }

    /// The same without the first `skip` MRs; none at all if that is `None`.
    #[inline]
    pub(crate) fn exposed_behind(
        &self,
        skip: Option<u32>,
    ) -> impl Iterator<Item = Exposed> + Clone + '_ {
        let mrs = match skip {
            Some(_) => self.chain.iter(),
            None => MrCursor(None),
        };
        mrs.skip(skip.unwrap_or(0) as usize)
            .map(|mr| mr.own().exposed)
    }

    /// The MRs as traces show them, in order.
    pub(crate) fn traced(&self) -> impl Iterator<Item = trace::Mr> + '_ {
        self.chain.iter().map(MrRef::traced)
    }

    /// The protection domain of the MRs, if there are any.
    #[inline]
    pub(in crate::verbs) fn pd(&self) -> Option<&Arc<Pd>> {
        self.pool.as_ref().map(|pool| &pool.pd)
    }

    /// Takes the MRs out of `self`, which is not dropped.
    #[inline]
    fn into_parts(self) -> (Option<Arc<MrPool<W>>>, MrChain<W>) {
        let this = ManuallyDrop::new(self);
        // SAFETY: Both are moved out once, since `this` is neither dropped nor used again.
        unsafe { (ptr::read(&this.pool), ptr::read(&this.chain)) }
    }
}

impl<W> MrList<Mapped<'_>, W> {
    /// No MRs, to map some into.
    #[inline]
    pub(crate) const fn none() -> Self {
        // INVARIANT: No MRs.
        Self {
            pool: None,
            chain: MrChain::new(),
            _state: PhantomData,
        }
    }

    /// Keeps `pool`, so that MRs of it can be added; `false` if there is another one already.
    #[inline]
    pub(super) fn keep(&mut self, pool: &Arc<MrPool<W>>) -> bool {
        match &self.pool {
            None => {
                self.pool = Some(pool.clone());
                true
            }
            Some(own) => Arc::ptr_eq(own, pool),
        }
    }

    /// Adds an MR at the end.
    ///
    /// # Safety
    ///
    /// It is of the pool that is [kept](Self::keep), and the device does not know it as valid.
    #[inline]
    pub(super) unsafe fn push(&mut self, mr: MrRef<W>) {
        // INVARIANT: By this function's contract.
        self.chain.push(mr);
    }

    /// Describes to `mr` what the `rest` of the entries of the last MR describe; returns how many
    /// entries that takes.
    #[cold]
    pub(super) fn copy_rest(&mut self, rest: Range<usize>, mr: &mut MrRef<W>) -> usize {
        let Some(last) = self.chain.tail else {
            return 0;
        };
        // SAFETY: The last MR of the chain (I2), whose right is borrowed exclusively with the
        // chain; it is gone when the function returns.
        let mut last = unsafe { MrRef::from_ptr(last) };
        mr.memory_mut().copy(last.memory_mut(), rest)
    }

    /// Takes the first MR out and unmaps it.
    #[cold]
    pub(super) fn pop_unmapped(&mut self) -> Option<MrRef<W>> {
        let mut mr = self.chain.pop()?;
        // SAFETY: The device does not know it as valid (I2).
        unsafe { mr.unmap() };
        Some(mr)
    }

    /// The same MRs, with another lifetime.
    ///
    /// # Safety
    ///
    /// The memory stays throughout `'n`, and until the result is dropped.
    #[inline]
    pub(in crate::verbs) unsafe fn kept<'n>(self) -> MrList<Mapped<'n>, W> {
        let (pool, chain) = self.into_parts();
        MrList {
            pool,
            chain,
            _state: PhantomData,
        }
    }

    /// Holds a reference to each page until the MRs are unmapped: for memory that its owner may
    /// free while the peer can reach it.
    #[cold]
    pub(in crate::verbs) fn hold(&mut self) {
        self.chain.for_each(MrRef::hold);
    }

    /// Puts the registrations in front of `send`; returns the first of the chain. From here on the
    /// MRs count as registered, even if the chain cannot be posted.
    ///
    /// # Safety
    ///
    /// A reference to the endpoint that keeps the pool is in use, and the chain is posted there, if
    /// at all. The memory stays until it is fenced, or the endpoint has been dropped.
    #[inline]
    pub(in crate::verbs) unsafe fn register(
        self,
        send: *mut bindings::ib_send_wr,
    ) -> (*mut bindings::ib_send_wr, MrList<Registered, W>) {
        let (pool, mut chain) = self.into_parts();
        let mut first = send;
        chain.for_each(|mr| first = mr.register_before(first));
        let registered = MrList {
            pool,
            chain,
            _state: PhantomData,
        };
        (first, registered)
    }
}

impl<W> MrList<Registered, W> {
    /// Takes out the MR that the peer has invalidated; `false` if it is not one of these.
    ///
    /// On iWARP the MR stays, to be invalidated here: a peer may invalidate an MR before it is
    /// valid, and its registration follows.
    pub(super) fn take_invalidated<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        invalidated: Invalidated,
    ) -> bool {
        let handle = invalidated.handle();
        match self.pd() {
            Some(pd) if ep.owns(pd) && invalidated.is_of(pd) => {}
            _ => return false,
        }
        if ep.registers_to_read() {
            return self.exposed().any(|exposed| exposed.handle == handle);
        }
        match self.chain.remove(handle) {
            Some(mut mr) => {
                // SAFETY: The device has invalidated the MR of this domain with this rkey. It has
                // not been registered with the same one since: an MR does not have the same rkey
                // again before `rkey::GENERATIONS` registrations. The endpoint is borrowed.
                unsafe { mr.unmap() };
                mr.into_idle();
                true
            }
            None => false,
        }
    }

    /// Notes that the MRs are exposed for the Call `xid`.
    #[inline]
    pub(in crate::verbs) fn given_out_for(&self, xid: u32) {
        for mr in self.chain.iter() {
            mr.rkey_owner.note(xid, mr.own().exposed.handle);
        }
    }

    /// Links the LOCAL_INVs of all MRs, to be completed by `passed`, and that of the last one by
    /// `last`. The last MR then has the MRs and the `waiter`.
    ///
    /// # Errors
    ///
    /// `waiter`, if there are no MRs.
    #[inline]
    pub(super) fn prepare_inv(
        self,
        passed: Done,
        last: Done,
        waiter: Waiter<W>,
    ) -> Result<ToInvalidate<W>, Waiter<W>> {
        let (_pool, mut chain) = self.into_parts();
        let mut inv = None;
        chain.for_each(|mr| {
            let this = mr.prepare_inv(passed, last);
            inv.get_or_insert(this);
        });
        let (Some(inv), Some(first), Some(last)) = (inv, chain.head, chain.tail) else {
            return Err(waiter);
        };
        // SAFETY: The last MR of the chain (I2), whose right is part of the chain. The pool is kept
        // above.
        unsafe { last.as_ref().put_posted(Posted { first, waiter }) };
        Ok(ToInvalidate { inv, last })
    }
}

/// LOCAL_INVs that are about to be posted.
pub(super) struct ToInvalidate<W> {
    /// The first work request.
    pub(super) inv: *mut bindings::ib_send_wr,
    /// The last MR, which has all of them.
    pub(super) last: NonNull<Mr<W>>,
}

impl<S: State, W> Drop for MrList<S, W> {
    fn drop(&mut self) {
        if S::REUSABLE {
            while let Some(mut mr) = self.chain.pop() {
                // SAFETY: The device does not know it as valid (I2).
                unsafe { mr.unmap() };
                mr.into_idle();
            }
        }
    }
}
