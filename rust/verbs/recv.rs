// SPDX-License-Identifier: GPL-2.0

//! Receive buffers: owned by whoever holds the [`Recv`], or by the device while posted.

use core::{
    ffi::c_void,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use crate::{
    admin::trace::Cid,
    bindings::{
        self,
        parked::Parked, //
    }, //
};

use super::{
    completion::{
        wc_and_cqe,
        RecvWorker, //
    },
    context::Context,
    dma::{
        Direction,
        DmaBuffer, //
    },
    domain::Domain,
    list::{
        Link,
        Linked, //
    }, //
};

/// How a Receive ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecvStatus {
    /// A message arrived.
    Received {
        /// Its length, never more than the buffer's.
        octets: usize,
        /// The handle that the peer's Send With Invalidate made invalid.
        invalidated: Option<u32>,
    },
    /// The connection ended before a message arrived.
    Flushed,
    /// The connection failed; the value is the `ib_wc_status`.
    Failed(u32),
}

impl RecvStatus {
    /// The `ib_wc_status`.
    pub(crate) fn code(&self) -> u32 {
        match self {
            Self::Received { .. } => bindings::ib_wc_status_IB_WC_SUCCESS,
            Self::Flushed => bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR,
            Self::Failed(status) => *status,
        }
    }
}

#[repr(C)]
struct Inner<U> {
    /// First, so that a completion's pointer to it is a pointer to the whole.
    cqe: bindings::ib_cqe,
    wr: bindings::ib_recv_wr,
    sge: bindings::ib_sge,
    /// For lists of buffers that are not posted.
    link: Link,
    /// The next in a [`RecvBatch`], while in one.
    next: Option<NonNull<Inner<U>>>,
    /// For traces.
    serial: i32,
    buffer: DmaBuffer,
    user: U,
}

/// A Receive buffer that is not posted, with `U` travelling beside it.
///
/// # Invariants
///
/// Points to an `Inner` from `KBox` that nobody else can reach.
pub(crate) struct Recv<U>(NonNull<Inner<U>>);

// SAFETY: A `Recv` owns all it points to, like a box.
unsafe impl<U: Send> Send for Recv<U> {}
// SAFETY: A shared reference only gives shared references to the buffer and to `U`.
unsafe impl<U: Sync> Sync for Recv<U> {}

impl<U> Recv<U> {
    /// Allocates a buffer of `size` octets.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map it.
    pub(crate) fn new(domain: &Arc<Domain>, size: usize, user: U, flags: Flags) -> Result<Self> {
        let buffer = DmaBuffer::new(domain, size, Direction::FromDevice, flags)?;
        let sge = buffer.sge(size);
        let inner = KBox::new(
            Inner {
                cqe: bindings::ib_cqe { done: None },
                wr: pin_init::zeroed(),
                sge,
                link: Link::new(),
                next: None,
                serial: Cid::serial(),
                buffer,
                user,
            },
            flags,
        )?;
        let inner = KBox::leak(inner);
        // What never changes in its work request. The buffer does not move any more.
        inner.wr.sg_list = &raw mut inner.sge;
        inner.wr.num_sge = 1;
        // SAFETY: The member that the RDMA core looks at.
        unsafe { *inner.wr.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut inner.cqe };
        // INVARIANT: From `KBox`; `leak` gives up the only reference.
        Ok(Self(NonNull::from(inner)))
    }

    /// # Safety
    ///
    /// `inner` comes from [`Self::into_inner`], and this is its only way back.
    #[inline]
    unsafe fn from_inner(inner: NonNull<Inner<U>>) -> Self {
        // INVARIANT: By this function's contract.
        Self(inner)
    }

    #[inline]
    fn into_inner(self) -> NonNull<Inner<U>> {
        mem::ManuallyDrop::new(self).0
    }

    /// Gives the buffer up, to be kept as a plain pointer.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<c_void> {
        self.into_inner().cast()
    }

    /// Takes back a buffer that was given up.
    ///
    /// # Safety
    ///
    /// `raw` comes from [`Self::into_raw`], and this is its only way back.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<c_void>) -> Self {
        // SAFETY: By this function's contract.
        unsafe { Self::from_inner(raw.cast()) }
    }

    #[inline]
    fn inner(&self) -> &Inner<U> {
        // SAFETY: Owned, by the type's invariants.
        unsafe { self.0.as_ref() }
    }

    /// The first `octets` of the buffer, at most the whole.
    #[inline]
    pub(crate) fn octets(&self, octets: usize) -> &[u8] {
        let whole = self.inner().buffer.as_slice();
        whole.get(..octets).unwrap_or(whole)
    }

    /// The size of the buffer, in octets.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.inner().buffer.len()
    }

    /// What travels with the buffer.
    #[inline]
    pub(crate) fn user(&self) -> &U {
        &self.inner().user
    }

    /// What travels with the buffer.
    #[inline]
    pub(crate) fn user_mut(&mut self) -> &mut U {
        // SAFETY: Owned, by the type's invariants; only `user` is reborrowed.
        unsafe { &mut (*self.0.as_ptr()).user }
    }

    /// The buffer beside what travels with it, for a parser that keeps its result there.
    #[inline]
    pub(crate) fn split(&mut self, octets: usize) -> (&[u8], &mut U) {
        // SAFETY: Owned, by the type's invariants; the two fields do not overlap.
        let inner = unsafe { self.0.as_mut() };
        let whole = inner.buffer.as_slice();
        (whole.get(..octets).unwrap_or(whole), &mut inner.user)
    }

    /// The protection domain that the buffer is for, by its number.
    #[inline]
    pub(crate) fn domain_id(&self) -> usize {
        self.inner().buffer.domain().id()
    }

    /// A number that names the buffer in a trace.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.inner().serial
    }
}

// SAFETY: The link is a member of the object, which only its owner reaches.
unsafe impl<U> Linked for Recv<U> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        let inner = self.into_inner().as_ptr();
        // SAFETY: A member of a valid object, hence not null.
        unsafe { NonNull::new_unchecked(&raw mut (*inner).link) }
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract, `link` is the member of a buffer that was given up.
        unsafe {
            let inner = kernel::container_of!(link.as_ptr(), Inner<U>, link);
            Self::from_inner(NonNull::new_unchecked(inner))
        }
    }
}

// SAFETY: The buffer is allocated apart, so that it stays in place, and the pointer to it is that
// of its allocation, good for writing.
unsafe impl<U: Send + 'static> Parked for Recv<U> {
    #[inline]
    fn park(self) -> NonNull<c_void> {
        self.into_raw()
    }

    #[inline]
    unsafe fn unpark(raw: NonNull<c_void>) -> Self {
        // SAFETY: By this function's contract.
        unsafe { Self::from_raw(raw) }
    }

    #[inline]
    fn octets(&self) -> &[u8] {
        self.inner().buffer.as_slice()
    }

    #[inline]
    fn as_mut_ptr(&self) -> *mut u8 {
        self.inner().buffer.as_mut_ptr()
    }
}

impl<U> Drop for Recv<U> {
    fn drop(&mut self) {
        // SAFETY: From `KBox`, and unreachable otherwise, by the type's invariants.
        drop(unsafe { KBox::from_raw(self.0.as_ptr()) });
    }
}

/// Receive buffers on their way to the device, posted with one call.
///
/// # Invariants
///
/// `head` starts a chain, through `next`, of `len` owned `Inner`s that ends with `tail`; in each
/// `wr.next` points to the successor's `wr`.
pub(crate) struct RecvBatch<U> {
    head: Option<NonNull<Inner<U>>>,
    tail: Option<NonNull<Inner<U>>>,
    len: usize,
}

// SAFETY: A batch owns its buffers.
unsafe impl<U: Send> Send for RecvBatch<U> {}

impl<U> RecvBatch<U> {
    /// An empty batch.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            head: None,
            tail: None,
            len: 0,
        }
    }

    /// How many buffers are in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a buffer at the end.
    #[inline]
    pub(crate) fn push(&mut self, recv: Recv<U>) {
        let new = recv.into_inner();
        let p = new.as_ptr();
        // SAFETY: `new` was owned by `recv`; nobody else looks at it.
        unsafe {
            (*p).next = None;
            (*p).wr.next = ptr::null_mut();
        }
        match self.tail {
            None => self.head = Some(new),
            // SAFETY: In the chain, hence owned by it.
            Some(tail) => unsafe {
                (*tail.as_ptr()).next = Some(new);
                (*tail.as_ptr()).wr.next = &raw mut (*p).wr;
            },
        }
        self.tail = Some(new);
        self.len += 1;
    }

    /// Takes the first buffer out.
    pub(crate) fn pop(&mut self) -> Option<Recv<U>> {
        let head = self.head?;
        // SAFETY: In the chain, hence owned by it.
        self.head = unsafe { (*head.as_ptr()).next };
        if self.head.is_none() {
            self.tail = None;
        }
        self.len -= 1;
        // SAFETY: The chain no longer has it.
        Some(unsafe { Recv::from_inner(head) })
    }

    /// Posts the whole batch on `qp`; buffers that the device refused come back, and all of them if
    /// one is mapped for another domain than `domain`.
    ///
    /// # Safety
    ///
    /// `qp` must be a queue pair in `domain` whose receive completion queue belongs to an
    /// `Endpoint<C>`, and must be drained before that endpoint's context goes.
    #[inline]
    pub(super) unsafe fn post<C: Context<Recv = U>>(
        self,
        qp: *mut bindings::ib_qp,
        domain: &Arc<Domain>,
    ) -> Result<(), (Error, Self)> {
        let Some(head) = self.head else {
            return Ok(());
        };
        let mut next = self.head;
        while let Some(at) = next {
            // SAFETY: In the chain, hence owned by it.
            let inner = unsafe { &mut *at.as_ptr() };
            if !Arc::ptr_eq(inner.buffer.domain(), domain) {
                return Err((EINVAL, self));
            }
            inner.cqe.done = Some(done::<C>);
            next = inner.next;
        }
        let this = mem::ManuallyDrop::new(self);
        let mut bad = ptr::null();
        // SAFETY: The chain is well formed and owned; what is accepted belongs to the device until
        // `done` takes it back.
        let ret =
            unsafe { bindings::rpcrdma_post_recv(qp, &raw const (*head.as_ptr()).wr, &mut bad) };
        if ret == 0 {
            return Ok(());
        }
        // Everything before `bad` is posted, and may be gone by now; start from `bad`.
        // A provider that names none has taken none.
        let refused = NonNull::new(bad.cast_mut()).map_or(Some(head), |wr| {
            // SAFETY: `bad` is the `wr` of one of ours.
            let p = unsafe { kernel::container_of!(wr.as_ptr(), Inner<U>, wr) };
            NonNull::new(p)
        });
        let mut len = 0;
        let mut next = refused;
        while let Some(at) = next {
            len += 1;
            // SAFETY: From `bad` on, nothing is posted, so all of it is ours.
            next = unsafe { (*at.as_ptr()).next };
        }
        // INVARIANT: The rest of a chain is a chain.
        let rest = Self {
            head: refused,
            tail: refused.and(this.tail),
            len,
        };
        Err((Error::from_errno(ret), rest))
    }
}

impl<U> Drop for RecvBatch<U> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// The end of a Receive, in the receive completion queue's worker.
///
/// # Safety
///
/// Called by the RDMA core for a buffer that [`RecvBatch::post`] posted for `C`.
unsafe extern "C" fn done<C: Context>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: The endpoint outlives its queues, and this is its receive queue's worker.
    let worker = unsafe { RecvWorker::<C>::of(cq) };
    // SAFETY: From the core.
    let (wc, cqe) = unsafe { wc_and_cqe(wc) };
    // SAFETY: Every Receive is posted with `cqe`, which is the first member of its `Inner`.
    let inner: NonNull<Inner<C::Recv>> = unsafe { NonNull::new_unchecked(cqe.cast()) };
    // SAFETY: Posted, hence from `into_inner`; its completion comes once.
    let recv = unsafe { Recv::from_inner(inner) };
    let status = match wc.status {
        bindings::ib_wc_status_IB_WC_SUCCESS => {
            let octets = (wc.byte_len as usize).min(recv.capacity());
            recv.inner().buffer.sync_for_cpu(octets);
            let invalidated =
                if wc.wc_flags & bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int != 0 {
                    // SAFETY: The flag says that this is the member in use.
                    Some(unsafe { *wc.ex.invalidate_rkey.as_ref() })
                } else {
                    None
                };
            RecvStatus::Received {
                octets,
                invalidated,
            }
        }
        bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => RecvStatus::Flushed,
        other => RecvStatus::Failed(other),
    };
    C::trace_received(&worker, recv.serial(), &status, wc.vendor_err);
    C::received(&worker, recv, status);
}
