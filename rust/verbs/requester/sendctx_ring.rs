// SPDX-License-Identifier: GPL-2.0

//! Messages on their way: a ring, filled by one sender and emptied by the send queue's worker.
//!
//! C: xprt_rdma.h, struct rpcrdma_sendctx, struct rpcrdma_buffer
//! C: verbs.c, rpcrdma_sendctxs_create(), rpcrdma_sendctx_create(), rpcrdma_sendctx_next()
//! C: rpc_rdma.c, rpcrdma_sendctx_dma_unmap(), rpcrdma_sendctx_unmap(), rpcrdma_sendctx_cancel()
//!
//! Messages are sent in the order in which they were posted, and most do not report it: the
//! completion of one releases all before it. So neither side needs a lock. What is flushed is never
//! released: some devices flush out of order. The ring ends with its connection, and lets go of
//! all.

use core::{
    cell::UnsafeCell,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    bindings,
    lib::bvec::BVec,
    trace::trace,
    verbs::{
        device::{
            attrs::SenderSizes,
            dma_buf::{
                Direction,
                DmaBuffer, //
            },
            pd::Pd, //
        },
        endpoint::{
            completion::Done,
            ep::HeldUntilDrained, //
        }, //
    }, //
};

/// There is no room in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendFull;

/// A page that a message is gathered from.
struct Gathered {
    page: NonNull<bindings::page>,
    addr: u64,
    len: u32,
}

/// A message, and the memory that it is composed in.
///
/// # Invariants
///
/// Each of `pages` is mapped for the domain's device, and holds a reference to its page. `sges`
/// never grows past its capacity, so that it stays in place.
#[repr(C)]
pub(in crate::verbs) struct SendCtx {
    cqe: bindings::ib_cqe,
    request: bindings::ib_send_wr,
    sges: KVec<bindings::ib_sge>,
    pages: KVec<Gathered>,
    buffer: DmaBuffer,
    /// Bytes of the buffer that are part of the message.
    used: usize,
    index: u32,
    ring: *const SendCtxRing,
}

impl SendCtx {
    fn new(pd: &Arc<Pd>, sizes: &SenderSizes, done: Done) -> Result<Self> {
        let sges = sizes.sges as usize;
        let mut entry = Self {
            cqe: bindings::ib_cqe { done: Some(done) },
            request: pin_init::zeroed(),
            sges: KVec::with_capacity(sges, GFP_KERNEL)?,
            // One is for the start of the message.
            pages: KVec::with_capacity(sges.saturating_sub(1), GFP_KERNEL)?,
            buffer: DmaBuffer::new(pd, sizes.buffer, Direction::ToDevice, GFP_KERNEL)?,
            used: 0,
            index: 0,
            ring: core::ptr::null(),
        };
        entry.request.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
        Ok(entry)
    }

    /// Forgets what was composed.
    #[inline]
    pub(in crate::verbs) fn clear(&mut self) {
        self.sges.clear();
        self.used = 0;
        if !self.pages.is_empty() {
            self.drop_pages();
        }
    }

    #[cold]
    fn drop_pages(&mut self) {
        let device = self.buffer.pd().device();
        for gathered in self.pages.iter() {
            // SAFETY: Mapped and referred to, by the type's invariants.
            unsafe {
                bindings::rpcrdma_dma_unmap_page(
                    device,
                    gathered.addr,
                    gathered.len as usize,
                    Direction::ToDevice.as_raw(),
                );
                bindings::rpcrdma_put_page(gathered.page.as_ptr());
            }
        }
        self.pages.clear();
    }

    #[inline]
    pub(in crate::verbs) fn memory(&mut self) -> &mut [u8] {
        self.buffer.as_mut_slice()
    }

    #[inline]
    pub(in crate::verbs) fn has_pages(&self) -> bool {
        !self.pages.is_empty()
    }

    #[inline]
    pub(in crate::verbs) fn append(&mut self, bytes: usize) -> Result<(), SendFull> {
        if bytes == 0 {
            return Ok(());
        }
        let end = self.used.checked_add(bytes).ok_or(SendFull)?;
        if end > self.buffer.len() {
            return Err(SendFull);
        }
        let mut sge = self.buffer.sge(bytes);
        sge.addr += self.used as u64;
        self.sges.push_within_capacity(sge).map_err(|_| SendFull)?;
        self.used = end;
        Ok(())
    }

    pub(in crate::verbs) fn gather(&mut self, bvec: &BVec<'_>) -> Result<(), SendFull> {
        if self.sges.len() == self.sges.capacity()
            || self.pages.len() == self.pages.capacity()
            || !bvec.is_counted()
        {
            return Err(SendFull);
        }
        let pd = self.buffer.pd();
        // SAFETY: The piece lies within its page; the reference keeps it until the message is sent.
        let addr = unsafe {
            bindings::rpcrdma_dma_map_page(
                pd.device(),
                bvec.page(),
                bvec.offset() as usize,
                bvec.len() as usize,
                Direction::ToDevice.as_raw(),
            )
        };
        // SAFETY: The domain keeps the device.
        if unsafe { bindings::rpcrdma_dma_mapping_error(pd.device(), addr) } != 0 {
            trace!(xprtrdma_dma_maperr(addr));
            return Err(SendFull);
        }
        let sge = bindings::ib_sge {
            addr,
            length: bvec.len(),
            lkey: pd.lkey(),
        };
        let page = NonNull::new(bvec.page()).ok_or(SendFull)?;
        // SAFETY: The page is there, by the invariants of `BVec`.
        unsafe { bindings::rpcrdma_get_page(page.as_ptr()) };
        // INVARIANT: Mapped and referred to. Neither fails, as there is room.
        let _ = self.pages.push_within_capacity(Gathered {
            page,
            addr,
            len: bvec.len(),
        });
        let _ = self.sges.push_within_capacity(sge);
        Ok(())
    }

    /// Scatter/gather elements of the message.
    #[inline]
    pub(in crate::verbs) fn elements(&self) -> u32 {
        // CAST: As many as one message may have.
        self.sges.len() as u32
    }

    /// Hands the message to the device; the work request that sends it.
    #[inline]
    pub(in crate::verbs) fn request(&mut self, signaled: bool) -> *mut bindings::ib_send_wr {
        self.buffer.sync_for_device(self.used);
        self.request.sg_list = self.sges.as_mut_ptr();
        // CAST: As many as one message may have.
        self.request.num_sge = self.sges.len() as c_int;
        self.request.send_flags = if signaled {
            bindings::ib_send_flags_IB_SEND_SIGNALED
        } else {
            0
        };
        &raw mut self.request
    }
}

impl Drop for SendCtx {
    fn drop(&mut self) {
        self.drop_pages();
    }
}

/// See the [module's](self) description.
///
/// # Invariants
///
/// Entries after `released`, up to the sender's last one, are the device's; the others are the
/// sender's. `released` is only changed by the send queue's worker.
pub(in crate::verbs) struct SendCtxRing {
    entries: KVVec<UnsafeCell<SendCtx>>,
    released: Atomic<u32>,
    pd: Arc<Pd>,
}

// SAFETY: An entry owns all that it points to, but for `ring`, which holds it. None of that is
// bound to a thread.
unsafe impl Send for SendCtxRing {}
// SAFETY: As above, and each entry has one user at a time, by the type's invariants; `released`
// hands it over.
unsafe impl Sync for SendCtxRing {}

impl HeldUntilDrained for Arc<SendCtxRing> {}

impl SendCtxRing {
    pub(in crate::verbs) fn new(
        pd: &Arc<Pd>,
        sizes: &SenderSizes,
        done: Done,
    ) -> Result<Arc<Self>> {
        // One entry is always empty: this is how a full ring differs from an empty one.
        let count = sizes.messages.checked_add(1).ok_or(EINVAL)? as usize;
        // `KVVec`: there may be no contiguous memory for so many.
        let mut entries = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            entries.push(UnsafeCell::new(SendCtx::new(pd, sizes, done)?), GFP_KERNEL)?;
        }
        let ring = Arc::new(
            Self {
                entries,
                released: Atomic::new(0),
                pd: pd.clone(),
            },
            GFP_KERNEL,
        )?;
        for (index, entry) in (0..).zip(ring.entries.iter()) {
            let entry = entry.get();
            // SAFETY: Nobody uses the ring yet. The entry does not move any more.
            unsafe {
                (*entry).index = index;
                (*entry).ring = &raw const *ring;
                *(*entry).request.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*entry).cqe;
            }
        }
        Ok(ring)
    }

    #[inline]
    pub(in crate::verbs) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// The entry after this one.
    #[inline]
    pub(in crate::verbs) fn next(&self, index: u32) -> u32 {
        match index + 1 {
            next if next as usize == self.entries.len() => 0,
            next => next,
        }
    }

    /// The last entry that was released.
    #[inline]
    pub(in crate::verbs) fn released(&self) -> u32 {
        // Pairs with the release in `release`: the entries up to it are ours.
        self.released.load(Acquire)
    }

    /// An entry.
    ///
    /// # Safety
    ///
    /// The caller is the entry's only user: the sender for entries not posted, the send worker for
    /// entries that have completed and are not released.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the caller is the entry's only user")]
    pub(in crate::verbs) unsafe fn entry(&self, index: u32) -> &mut SendCtx {
        // PANIC: `next` does not leave the ring.
        // SAFETY: By this function's contract.
        unsafe { &mut *self.entries[index as usize].get() }
    }

    /// The number of the entry that `cqe` belongs to.
    ///
    /// # Safety
    ///
    /// `cqe` is an entry's, whose ring is there.
    #[inline]
    pub(in crate::verbs) unsafe fn index(cqe: *mut bindings::ib_cqe) -> u32 {
        // SAFETY: By this function's contract; `cqe` is the entry's first member.
        unsafe { (*cqe.cast::<SendCtx>()).index }
    }

    /// Releases the entry that `cqe` belongs to, and all that were posted before it.
    ///
    /// # Safety
    ///
    /// In the send queue's worker, for an entry whose message has been sent: not one that was
    /// flushed, which may be reported before those that were posted before it. The ring is there.
    #[inline]
    pub(in crate::verbs) unsafe fn release(cqe: *mut bindings::ib_cqe) {
        // SAFETY: By this function's contract; `cqe` is the entry's first member.
        let (ring, last) = unsafe {
            let entry = cqe.cast::<SendCtx>();
            (&*(*entry).ring, (*entry).index)
        };
        let mut index = ring.released.load(Relaxed);
        while index != last {
            index = ring.next(index);
            // SAFETY: Posted before the one that has been sent, hence completed; it is released
            // below. By this function's contract this is the send worker.
            let entry = unsafe { ring.entry(index) };
            if entry.has_pages() {
                entry.drop_pages();
            }
        }
        ring.released.store(last, Release);
    }
}
