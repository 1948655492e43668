// SPDX-License-Identifier: GPL-2.0

//! Receive buffers. The device owns a posted buffer, and the holder of a [`RecvBuf`] any other.
//!
//! C: verbs.c, rpcrdma_rep_create(), rpcrdma_rep_free(), rpcrdma_post_recvs()
//! C: xprt_rdma.h, struct rpcrdma_rep
//! C: svc_rdma.h, struct svc_rdma_recv_ctxt
//! C: svc_rdma_recvfrom.c, svc_rdma_recv_ctxt_alloc(), svc_rdma_recv_ctxt_destroy()
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

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
    sync::Arc,
    types::ForeignOwnable, //
};

use crate::{
    bindings,
    lib::{
        close_reason::CloseReason,
        foreign_buf::ForeignBuf,
        llist::{
            ByList,
            Queue,
            Wrapper, //
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
    invalidated::Invalidated,
    wc::Done, //
};

/// The status of a completed Receive.
pub(crate) enum RecvStatus {
    /// A message arrived.
    Received {
        /// The length of the message in bytes, at most the size of the buffer.
        len: usize,
        /// The rkey that the peer's Send With Invalidate has invalidated.
        invalidated: Option<Invalidated>,
    },
    /// The connection ended before a message arrived.
    Flushed,
    /// The Receive failed, and with it the connection. The value is the `ib_wc_status`, which is
    /// `IB_WC_GENERAL_ERR` if something else than a Send has consumed the Receive.
    Failed(u32),
}

impl RecvStatus {
    /// Why the connection ends if the Receive has failed.
    #[cold]
    pub(crate) fn close_reason(&self) -> CloseReason {
        match self {
            Self::Failed(status) => CloseReason::Completion(*status),
            Self::Flushed | Self::Received { .. } => CloseReason::Flushed,
        }
    }

    /// The `ib_wc_status`.
    pub(crate) fn code(&self) -> u32 {
        match self {
            Self::Received { .. } => bindings::ib_wc_status_IB_WC_SUCCESS,
            Self::Flushed => bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR,
            Self::Failed(status) => *status,
        }
    }
}

/// The content of a Receive buffer.
///
/// # Invariants
///
/// - I1: `wr` refers to `cqe` and `sge`. It is not in use unless the buffer is posted.
pub(crate) struct Inner<U> {
    cqe: bindings::ib_cqe,
    wr: bindings::ib_recv_wr,
    sge: bindings::ib_sge,
    /// Identifies the buffer in trace events.
    serial: i32,
    buffer: RecvBuffer,
    user: U,
}

// SAFETY: The pointers in `wr` refer to `cqe` and `sge` of the same allocation, so they stay valid
// on any thread for as long as the object exists. All else is `Send`.
unsafe impl<U: Send> Send for Inner<U> {}

impl<U> Inner<U> {
    /// The first `len` bytes of the buffer, or all if `len` exceeds its size, with the user's data.
    #[inline]
    fn split(&mut self, len: usize) -> (&[u8], &mut U) {
        let whole = self.buffer.as_slice();
        (whole.get(..len).unwrap_or(whole), &mut self.user)
    }
}

/// A Receive buffer that is not posted.
///
/// Posting a buffer consumes it, and the completion handler gets it back, so the owner of a
/// `RecvBuf` may access its memory. `U` is data of the client or the server that stays with the
/// buffer while it is posted.
pub(crate) struct RecvBuf<U>(LlistBox<Inner<U>>);

impl<U> RecvBuf<U> {
    /// Allocates a buffer of `size` bytes and maps it for the device of `pd`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EIO` if the memory cannot be mapped.
    pub(crate) fn new(pd: &Arc<Pd>, size: usize, user: U, flags: Flags) -> Result<Self> {
        let buffer = RecvBuffer::new(pd, size, flags)?;
        let mut this = LlistBox::new_uninit(flags)?.write(Inner {
            cqe: bindings::ib_cqe { done: None },
            wr: pin_init::zeroed(),
            sge: buffer.sge(),
            serial: Cid::serial(),
            buffer,
            user,
        });
        let inner = &mut *this;
        inner.wr.sg_list = &raw mut inner.sge;
        inner.wr.num_sge = 1;
        // SAFETY: The union member that the RDMA core reads. All members are plain.
        *unsafe { inner.wr.__bindgen_anon_1.wr_cqe.as_mut() } = &raw mut inner.cqe;
        Ok(Self(this))
    }

    /// The pointer that [`Self::into_raw`] will return.
    #[inline]
    pub(in crate::verbs) fn as_raw(&mut self) -> NonNull<c_void> {
        self.0.as_non_null().cast()
    }

    /// Converts the buffer to a pointer. [`Self::from_raw`] reverts this.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<c_void> {
        self.0.into_non_null().cast()
    }

    /// Converts a pointer back to the buffer.
    ///
    /// # Safety
    ///
    /// `raw` comes from [`Self::into_raw`], and each pointer is converted back at most once.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonNull<c_void>) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { LlistBox::from_raw(raw.as_ptr().cast()) })
    }

    /// Takes the buffer of a completed Receive back from the device.
    ///
    /// # Safety
    ///
    /// `cqe` and `wc` are those of the completion of a Receive that [`RecvBatch::post`] posted, the
    /// completion handler calls this once, and the domain that the buffer is mapped for is alive.
    #[inline]
    pub(super) unsafe fn complete(
        cqe: *mut bindings::ib_cqe,
        wc: &bindings::ib_wc,
    ) -> (Self, RecvStatus) {
        // SAFETY: By this function's contract, `cqe` is that of a buffer that `post` gave to the
        // device, and the device has given it back with this completion.
        let this = Self(unsafe { LlistBox::from_raw(kernel::container_of!(cqe, Inner<U>, cqe)) });
        let status = match wc.status {
            bindings::ib_wc_status_IB_WC_SUCCESS
                if wc.opcode != bindings::ib_wc_opcode_IB_WC_RECV =>
            {
                // An RDMA Write With Immediate: `byte_len` is that of the Write, and the buffer
                // still has an earlier message. RPC-over-RDMA has no use for immediate data.
                RecvStatus::Failed(bindings::ib_wc_status_IB_WC_GENERAL_ERR)
            }
            bindings::ib_wc_status_IB_WC_SUCCESS => {
                let len = (wc.byte_len as usize).min(this.capacity());
                // SAFETY: The domain is alive by this function's contract.
                unsafe { this.0.buffer.sync_for_cpu(len) };
                let with_invalidate =
                    wc.wc_flags & bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int != 0;
                let invalidated = with_invalidate.then(|| {
                    // SAFETY: The flag says that this member of the union is in use.
                    let handle = unsafe { *wc.ex.invalidate_rkey.as_ref() };
                    // SAFETY: By this completion. The buffer was posted on a QP of its domain.
                    unsafe { Invalidated::new(handle, this.pd_id()) }
                });
                RecvStatus::Received { len, invalidated }
            }
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => RecvStatus::Flushed,
            other => RecvStatus::Failed(other),
        };
        (this, status)
    }

    /// The first `len` bytes of the buffer, or all if `len` exceeds its size.
    #[inline]
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        let whole = self.0.buffer.as_slice();
        whole.get(..len).unwrap_or(whole)
    }

    /// The size of the buffer in bytes.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.0.buffer.len()
    }

    /// The data that stays with the buffer.
    #[inline]
    pub(crate) fn user(&self) -> &U {
        &self.0.user
    }

    /// The data that stays with the buffer.
    #[inline]
    pub(crate) fn user_mut(&mut self) -> &mut U {
        &mut self.0.user
    }

    /// The first `len` bytes of the buffer together with its data, for a parser that stores its
    /// result there.
    #[inline]
    pub(crate) fn split(&mut self, len: usize) -> (&[u8], &mut U) {
        self.0.split(len)
    }

    /// The [`Pd::id`] of the domain that the buffer was mapped for. The domain may have ended.
    #[inline]
    pub(crate) fn pd_id(&self) -> u64 {
        self.0.buffer.pd_id()
    }

    /// Identifies the buffer in trace events.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.0.serial
    }
}

// SAFETY: Uses no `ByList`.
unsafe impl<U> Wrapper for RecvBuf<U> {
    type Entry = LlistBox<Inner<U>>;

    #[inline]
    fn into_entry(self, _: ByList) -> Self::Entry {
        self.0
    }

    #[inline]
    fn from_entry(inner: Self::Entry, _: ByList) -> Self {
        Self(inner)
    }
}

// SAFETY: `into_foreign` returns the address of an `Inner`, which is aligned and not NULL.
unsafe impl<U: 'static> ForeignOwnable for RecvBuf<U> {
    const FOREIGN_ALIGN: usize = align_of::<Inner<U>>();

    type Borrowed<'a> = &'a U;
    type BorrowedMut<'a> = RecvBufMut<'a, U>;

    #[inline]
    fn into_foreign(self) -> *mut c_void {
        self.into_raw().as_ptr()
    }

    #[inline]
    unsafe fn from_foreign(ptr: *mut c_void) -> Self {
        // SAFETY: By this function's contract `ptr` comes from `into_foreign`, which never returns
        // NULL, and is passed here once.
        unsafe { Self::from_raw(NonNull::new_unchecked(ptr)) }
    }

    #[inline]
    unsafe fn borrow<'a>(ptr: *mut c_void) -> &'a U {
        // SAFETY: By this function's contract the buffer is foreign-owned within `'a`.
        unsafe { &(*ptr.cast::<Inner<U>>()).user }
    }

    #[inline]
    unsafe fn borrow_mut<'a>(ptr: *mut c_void) -> RecvBufMut<'a, U> {
        // SAFETY: By this function's contract the buffer is foreign-owned within `'a`, and there is
        // no other borrow of it.
        RecvBufMut(unsafe { &mut *ptr.cast() })
    }
}

/// An exclusive borrow of a buffer that is foreign-owned. Its data can be changed, but the buffer,
/// whose bytes C code may refer to, cannot be replaced.
pub(crate) struct RecvBufMut<'a, U>(&'a mut Inner<U>);

impl<U> RecvBufMut<'_, U> {
    /// The data that the buffer carries.
    #[inline]
    pub(crate) fn user(&self) -> &U {
        &self.0.user
    }

    /// The data that the buffer carries.
    #[inline]
    pub(crate) fn user_mut(&mut self) -> &mut U {
        &mut self.0.user
    }

    /// The first `len` bytes of the buffer together with its data.
    #[inline]
    pub(crate) fn split(&mut self, len: usize) -> (&[u8], &mut U) {
        self.0.split(len)
    }
}

// SAFETY: The bytes are an allocation of their own, so they stay in place. The pointer is that of
// the allocation, through which the bytes may be written.
unsafe impl<U: Send + 'static> ForeignBuf for RecvBuf<U> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.0.buffer.as_slice()
    }

    #[inline]
    fn as_mut_ptr(&self) -> *mut u8 {
        self.0.buffer.as_mut_ptr()
    }
}

/// Receive buffers to be posted with one call.
pub(crate) struct RecvBatch<U> {
    buffers: Queue<LlistBox<Inner<U>>>,
    len: usize,
}

impl<U> RecvBatch<U> {
    /// Creates an empty batch.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            buffers: Queue::new(),
            len: 0,
        }
    }

    /// The number of buffers.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a buffer at the end.
    #[inline]
    pub(crate) fn push(&mut self, recv: RecvBuf<U>) {
        self.buffers.push(recv.0);
        self.len += 1;
    }

    /// Removes the first buffer.
    pub(crate) fn pop(&mut self) -> Option<RecvBuf<U>> {
        let inner = self.buffers.pop()?;
        self.len -= 1;
        Some(RecvBuf(inner))
    }

    /// Hands the buffers to the device of `pd`, and links their work requests. Returns the first,
    /// or null if there are no buffers.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a buffer is mapped for another domain.
    #[inline]
    fn link(&mut self, pd: &Pd, done: Done) -> Result<*mut bindings::ib_recv_wr> {
        let mut first = ptr::null_mut();
        let mut end = &mut first;
        for inner in self.buffers.iter_mut() {
            // The reader of the last message may have written to it: SUNRPC decrypts in place.
            inner.buffer.sync_for_device(pd)?;
            inner.cqe.done = Some(done);
            *end = &raw mut inner.wr;
            end = &mut inner.wr.next;
        }
        *end = ptr::null_mut();
        Ok(first)
    }

    /// Posts the batch on `qp`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a buffer is mapped for another domain than `pd`, or the device's error. The
    /// buffers that were not posted come with it.
    ///
    /// # Safety
    ///
    /// `qp` is a QP in `pd`, and is drained before `pd` ends. `done` passes each completion to
    /// [`RecvBuf::complete`] of this type.
    #[inline]
    pub(super) unsafe fn post(
        mut self,
        qp: *mut bindings::ib_qp,
        pd: &Arc<Pd>,
        done: Done,
    ) -> Result<(), (Error, Self)> {
        let first = match self.link(pd, done) {
            Ok(first) if first.is_null() => return Ok(()),
            Ok(first) => first,
            Err(error) => return Err((error, self)),
        };
        mem::forget(self);
        let mut bad = ptr::null();
        // SAFETY: The chain is well formed. Its buffers were owned, and belong to the device until
        // `done` takes them back. `qp` and `pd` are alive until then by this function's contract.
        let ret = unsafe { bindings::rpcrdma_post_recv(qp, first, &mut bad) };
        if ret == 0 {
            return Ok(());
        }
        // Buffers before `bad` are posted, and may have completed already. If the driver left `bad`
        // null, it is unknown which were posted (see `BadWr`), and none is taken back.
        let mut next = bad.cast_mut();
        let mut rest = Self::new();
        while !next.is_null() {
            // SAFETY: Buffers from `bad` on were not posted. Each is taken back once, after its
            // `next` has been read.
            unsafe {
                let inner = kernel::container_of!(next, Inner<U>, wr);
                next = (*next).next;
                rest.push(RecvBuf(LlistBox::from_raw(inner)));
            }
        }
        Err((Error::from_errno(ret), rest))
    }
}
