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
    bindings,
    lib::{
        foreign_buf::ForeignBuf,
        llist::{
            Link,
            Linked,
            Queue, //
        },
        llist_box::LlistBox, //
    },
    trace::Cid,
    verbs::device::{
        pd::Pd,
        recv_buf::RecvBuffer, //
    }, //
};

use super::{
    completion::RecvWorker,
    ops::EndpointOps, //
};

/// How a Receive ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecvStatus {
    /// A message arrived.
    Received {
        /// Its length, never more than the buffer's.
        bytes: usize,
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

struct Inner<U> {
    cqe: bindings::ib_cqe,
    wr: bindings::ib_recv_wr,
    sge: bindings::ib_sge,
    /// For traces.
    serial: i32,
    buffer: RecvBuffer,
    user: U,
}

// SAFETY: It owns all that it points to.
unsafe impl<U: Send> Send for Inner<U> {}

/// A Receive buffer that is not posted, with `U` travelling beside it.
pub(crate) struct RecvBuf<U>(LlistBox<Inner<U>>);

impl<U> RecvBuf<U> {
    /// Allocates a buffer of `size` bytes.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map it.
    pub(crate) fn new(pd: &Arc<Pd>, size: usize, user: U, flags: Flags) -> Result<Self> {
        let buffer = RecvBuffer::new(pd, size, flags)?;
        let this = LlistBox::uninit(flags)?.fill(Inner {
            cqe: bindings::ib_cqe { done: None },
            wr: pin_init::zeroed(),
            sge: buffer.sge(),
            serial: Cid::serial(),
            buffer,
            user,
        });
        let inner = this.as_ptr();
        // What never changes in its work request. The buffer does not move any more.
        // SAFETY: Owned; `wr_cqe` is the member that the RDMA core looks at.
        unsafe {
            (*inner).wr.sg_list = &raw mut (*inner).sge;
            (*inner).wr.num_sge = 1;
            *(*inner).wr.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*inner).cqe;
        }
        Ok(Self(this))
    }

    /// What [`Self::into_raw`] will return.
    #[inline]
    pub(in crate::verbs) fn as_raw(&self) -> NonNull<c_void> {
        // SAFETY: A valid object is not at null.
        unsafe { NonNull::new_unchecked(self.0.as_ptr().cast()) }
    }

    /// Gives the buffer up, to be kept as a plain pointer.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<c_void> {
        // SAFETY: A valid object is not at null.
        unsafe { NonNull::new_unchecked(self.0.into_raw().cast()) }
    }

    /// Takes back a buffer that was given up.
    ///
    /// # Safety
    ///
    /// `raw` comes from [`Self::into_raw`], and this is its only way back.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<c_void>) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { LlistBox::from_raw(raw.as_ptr().cast()) })
    }

    /// The first `bytes` of the buffer, at most the whole.
    #[inline]
    pub(crate) fn bytes(&self, bytes: usize) -> &[u8] {
        let whole = self.0.buffer.as_slice();
        whole.get(..bytes).unwrap_or(whole)
    }

    /// The size of the buffer, in bytes.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.0.buffer.len()
    }

    /// What travels with the buffer.
    #[inline]
    pub(crate) fn user(&self) -> &U {
        &self.0.user
    }

    /// What travels with the buffer.
    #[inline]
    pub(crate) fn user_mut(&mut self) -> &mut U {
        // SAFETY: Owned. The rest, which the work request points to, is not borrowed.
        unsafe { &mut (*self.0.as_ptr()).user }
    }

    /// The buffer beside what travels with it, for a parser that keeps its result there.
    #[inline]
    pub(crate) fn split(&mut self, bytes: usize) -> (&[u8], &mut U) {
        let inner = self.0.as_ptr();
        // SAFETY: Owned, and two members apart. The rest, which the work request points to, is not
        // borrowed.
        let (whole, user) = unsafe { ((*inner).buffer.as_slice(), &mut (*inner).user) };
        (whole.get(..bytes).unwrap_or(whole), user)
    }

    /// The protection domain that the buffer is for, by its number. It may have ended.
    #[inline]
    pub(crate) fn pd_id(&self) -> usize {
        self.0.buffer.pd_id()
    }

    /// A number that names the buffer in a trace.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.0.serial
    }
}

// SAFETY: As for the box inside.
unsafe impl<U> Linked for RecvBuf<U> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        self.0.into_link()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { LlistBox::from_link(link) })
    }
}

// SAFETY: The buffer is allocated apart, so that it stays in place, and the pointer to it is that
// of its allocation, good for writing.
unsafe impl<U: Send + 'static> ForeignBuf for RecvBuf<U> {
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
    fn bytes(&self) -> &[u8] {
        self.0.buffer.as_slice()
    }

    #[inline]
    fn as_mut_ptr(&self) -> *mut u8 {
        self.0.buffer.as_mut_ptr()
    }
}

/// Receive buffers on their way to the device, posted with one call.
pub(crate) struct RecvBatch<U> {
    buffers: Queue<RecvBuf<U>>,
    len: usize,
}

impl<U> RecvBatch<U> {
    /// An empty batch.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            buffers: Queue::new(),
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
    pub(crate) fn push(&mut self, recv: RecvBuf<U>) {
        self.buffers.push(recv);
        self.len += 1;
    }

    /// Takes the first buffer out.
    pub(crate) fn pop(&mut self) -> Option<RecvBuf<U>> {
        let recv = self.buffers.pop()?;
        self.len -= 1;
        Some(recv)
    }

    /// Posts the whole batch on `qp`; buffers that the device refused come back, and all of them if
    /// one is mapped for another domain than `pd`.
    ///
    /// # Safety
    ///
    /// `qp` must be a queue pair in `pd` whose receive completion queue belongs to an
    /// `Endpoint<C>`, and must be drained before that endpoint's context goes.
    #[inline]
    pub(in crate::verbs) unsafe fn post<C: EndpointOps<RecvData = U>>(
        self,
        qp: *mut bindings::ib_qp,
        pd: &Arc<Pd>,
    ) -> Result<(), (Error, Self)> {
        let mut first: *mut bindings::ib_recv_wr = ptr::null_mut();
        let mut end = &raw mut first;
        for link in self.buffers.links() {
            // SAFETY: The link is of a buffer in the queue, hence owned by it.
            let inner = unsafe { LlistBox::<Inner<U>>::at(link).as_ptr() };
            // SAFETY: As above.
            if !unsafe { (*inner).buffer.is_for(pd) } {
                return Err((EINVAL, self));
            }
            // SAFETY: As above, and `pd` is there; `end` is `first`, or in the buffer before
            // this.
            unsafe {
                // Whoever read the last message may have written to it: SUNRPC decrypts in place.
                (*inner).buffer.sync_for_device();
                (*inner).cqe.done = Some(done::<C>);
                *end = &raw mut (*inner).wr;
                end = &raw mut (*inner).wr.next;
            }
        }
        // SAFETY: As above.
        unsafe { *end = ptr::null_mut() };
        if first.is_null() {
            return Ok(());
        }
        mem::forget(self);
        let mut bad = ptr::null();
        // SAFETY: The chain is well formed and owned; what is accepted belongs to the device until
        // `done` takes it back.
        let ret = unsafe { bindings::rpcrdma_post_recv(qp, first, &mut bad) };
        if ret == 0 {
            return Ok(());
        }
        // Everything before `bad` is posted, and may be gone by now; start from `bad`. Of what a
        // provider does not name nothing is known (`BadWr`): it stays in place.
        let mut next = bad.cast_mut();
        let mut rest = Self::new();
        while !next.is_null() {
            // SAFETY: From `bad` on, nothing is posted, so all of it is ours, and taken back once.
            unsafe {
                let inner = kernel::container_of!(next, Inner<U>, wr);
                next = (*next).next;
                rest.push(RecvBuf(LlistBox::from_raw(inner)));
            }
        }
        Err((Error::from_errno(ret), rest))
    }
}

/// The end of a Receive, in the receive completion queue's worker.
///
/// # Safety
///
/// Called by the RDMA core, on the receive queue of an `Endpoint<C>`, for a buffer that
/// [`RecvBatch::post`] posted there.
unsafe extern "C" fn done<C: EndpointOps>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { RecvWorker::<C>::enter(cq, wc) };
    // SAFETY: Every Receive is posted with the `cqe` of its buffer; its completion comes once.
    let recv =
        RecvBuf(unsafe { LlistBox::from_raw(kernel::container_of!(cqe, Inner<C::RecvData>, cqe)) });
    let status = match wc.status {
        bindings::ib_wc_status_IB_WC_SUCCESS => {
            let bytes = (wc.byte_len as usize).min(recv.capacity());
            // SAFETY: The queue's worker is called before the endpoint lets go of its domain.
            unsafe { recv.0.buffer.sync_for_cpu(bytes) };
            let invalidated =
                if wc.wc_flags & bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int != 0 {
                    // SAFETY: The flag says that this is the member in use.
                    Some(unsafe { *wc.ex.invalidate_rkey.as_ref() })
                } else {
                    None
                };
            RecvStatus::Received { bytes, invalidated }
        }
        bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => RecvStatus::Flushed,
        other => RecvStatus::Failed(other),
    };
    C::trace_received(&worker, recv.serial(), &status, wc.vendor_err);
    C::received(&worker, recv, status);
}
