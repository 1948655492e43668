// SPDX-License-Identifier: GPL-2.0

//! The Sends of a client that may be posted: a ring, filled by one sender and emptied by the send
//! queue's worker.
//!
//! Sends complete in the order in which they were posted, and most of them are not signalled: the
//! completion of one releases all before it. So neither side needs a lock. A flushed Send is never
//! released: some devices flush out of order. The ring is freed with its connection, and everything
//! in it.
//!
//! A buffer stays with its entry until that is released. The sender then moves the buffer to the
//! next entry that has none. So there are no more buffers than the most Sends ever outstanding, and
//! the same few stay in the cache.
//!
//! C: xprt_rdma.h, struct rpcrdma_sendctx, struct rpcrdma_buffer
//! C: verbs.c, rpcrdma_sendctxs_create(), rpcrdma_sendctx_create(), rpcrdma_sendctx_next()
//! C: rpc_rdma.c, rpcrdma_sendctx_dma_unmap(), rpcrdma_sendctx_unmap(), rpcrdma_sendctx_cancel()

use core::{
    cell::UnsafeCell,
    mem,
    ptr::NonNull, //
};

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::ordering::{
            Acquire,
            Relaxed,
            Release, //
        },
        Arc,
        UniqueArc, //
    }, //
};

use crate::{
    bindings,
    lib::{
        bvec::BVec,
        sync::Atomic, //
    },
    trace::trace,
    verbs::{
        device::{
            attrs::SenderSizes,
            dma_buf::{
                Direction,
                DmaBuffer, //
            },
            dma_map::DmaMapper,
            pd::Pd, //
        },
        endpoint::{
            completion::Done,
            ep::HeldUntilDrained,
            send_wr::set_cqe, //
        }, //
    }, //
};

/// The message has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendFull;

/// A page that a message gathers bytes from.
struct Gathered {
    page: NonNull<bindings::page>,
    addr: u64,
    len: u32,
}

/// A Send, and the buffer for its message.
///
/// # Invariants
///
/// - I1: Each of `pages` is mapped for the device of the buffer's domain, and holds a reference to
///   its page. Without a buffer there are none.
/// - I2: `sges` does not grow beyond its capacity, so that it stays in place.
/// - I3: Once the ring is created, `ring` is the one that contains this, and `cqe` stays in place.
#[repr(C)]
pub(super) struct SendCtx {
    cqe: bindings::ib_cqe,
    request: bindings::ib_send_wr,
    sges: KVec<bindings::ib_sge>,
    pages: KVec<Gathered>,
    /// In a box, because it moves from entry to entry.
    buffer: Option<KBox<DmaBuffer>>,
    /// Bytes of the buffer that the message uses.
    used: usize,
    index: u32,
    ring: *const SendCtxRing,
}

impl SendCtx {
    fn new(sizes: &SenderSizes, done: Done, buffer: Option<KBox<DmaBuffer>>) -> Result<Self> {
        let sges = sizes.sges as usize;
        let mut entry = Self {
            cqe: bindings::ib_cqe { done: Some(done) },
            request: pin_init::zeroed(),
            sges: KVec::with_capacity(sges, GFP_KERNEL)?,
            // One SGE is that of the header.
            pages: KVec::with_capacity(sges.saturating_sub(1), GFP_KERNEL)?,
            buffer,
            used: 0,
            index: 0,
            ring: core::ptr::null(),
        };
        entry.request.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
        Ok(entry)
    }

    /// Empties the message.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.sges.clear();
        self.used = 0;
        if !self.pages.is_empty() {
            self.drop_pages();
        }
    }

    #[cold]
    fn drop_pages(&mut self) {
        let Some(buffer) = &self.buffer else {
            return;
        };
        let dma = DmaMapper::new(buffer.pd());
        for gathered in self.pages.iter() {
            // SAFETY: Mapped for this domain, and held (I1). The Send has completed, is
            // not posted, or the Send Queue is drained.
            unsafe { dma.unmap_bvec(gathered.addr, gathered.len, Direction::ToDevice.as_raw()) };
            // SAFETY: The reference is held (I1), and goes with `pages` below.
            unsafe { bindings::rpcrdma_put_page(gathered.page.as_ptr()) };
        }
        self.pages.clear();
    }

    /// Whether there is a buffer.
    #[inline]
    fn has_buffer(&self) -> bool {
        self.buffer.is_some()
    }

    /// Stores the first buffer.
    #[cold]
    fn set_buffer(&mut self, buffer: KBox<DmaBuffer>) {
        self.buffer = Some(buffer);
    }

    /// Takes the buffer of another entry, whose message is released.
    #[inline]
    fn take_buffer_of(&mut self, other: &mut Self) {
        // INVARIANT: I1: a message that is released, or not begun, has no pages.
        mem::swap(&mut self.buffer, &mut other.buffer);
    }

    /// The memory of the buffer, none without one.
    #[inline]
    pub(super) fn memory(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        }
    }

    /// Whether the message gathers bytes from pages.
    #[inline]
    pub(super) fn has_pages(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Appends the next `len` bytes of the buffer to the message.
    #[inline]
    pub(super) fn append(&mut self, len: usize) -> Result<(), SendFull> {
        if len == 0 {
            return Ok(());
        }
        let buffer = self.buffer.as_ref().ok_or(SendFull)?;
        let end = self.used.checked_add(len).ok_or(SendFull)?;
        if end > buffer.len() {
            return Err(SendFull);
        }
        let mut sge = buffer.sge(len);
        sge.addr += self.used as u64;
        self.sges.push_within_capacity(sge).map_err(|_| SendFull)?;
        self.used = end;
        Ok(())
    }

    /// Appends bytes of a page, which is held until the Send is released.
    pub(super) fn gather(&mut self, bvec: &BVec<'_>) -> Result<(), SendFull> {
        if self.sges.len() == self.sges.capacity()
            || self.pages.len() == self.pages.capacity()
            || !bvec.is_counted()
        {
            return Err(SendFull);
        }
        let dma = DmaMapper::new(self.buffer.as_ref().ok_or(SendFull)?.pd());
        let mapped = dma.map_bvec(bvec, Direction::ToDevice.as_raw());
        let sge = mapped.map_err(|addr| {
            trace!(xprtrdma_dma_maperr(addr));
            SendFull
        })?;
        let page = NonNull::new(bvec.page()).ok_or(SendFull)?;
        // SAFETY: The page is allocated, by the invariants of `BVec`, and has a reference count.
        unsafe { bindings::rpcrdma_get_page(page.as_ptr()) };
        // INVARIANT: I1: mapped, and held. I2: neither push fails, as there is room.
        let (addr, len) = (sge.addr, sge.length);
        let _ = self
            .pages
            .push_within_capacity(Gathered { page, addr, len });
        let _ = self.sges.push_within_capacity(sge);
        Ok(())
    }

    /// The number of SGEs of the message.
    #[inline]
    pub(super) fn elements(&self) -> u32 {
        // CAST: The device's limit is 32 bits.
        self.sges.len() as u32
    }

    /// Syncs the buffer for the device, and prepares the work request.
    #[inline]
    pub(super) fn request(&mut self, signaled: bool) -> *mut bindings::ib_send_wr {
        if let Some(buffer) = &self.buffer {
            buffer.sync_for_device(self.used);
        }
        self.request.sg_list = self.sges.as_mut_ptr();
        // CAST: As above.
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

/// See the [module documentation](self).
///
/// # Invariants
///
/// - I1: The device owns the entries after `released`, up to the last one that was posted. All
///   others are the sender's.
/// - I2: Only the send queue's worker changes `released`.
pub(super) struct SendCtxRing {
    entries: KVVec<UnsafeCell<SendCtx>>,
    released: Atomic<u32>,
    pd: Arc<Pd>,
    /// Bytes of a buffer.
    buffer_len: usize,
}

// SAFETY: The pointers in an entry refer to parts of that entry, to pages that it holds, and to the
// ring itself. None of that depends on the thread.
unsafe impl Send for SendCtxRing {}
// SAFETY: As above. Each entry has one user at a time (I1), and `released` passes it on, with
// release and acquire ordering.
unsafe impl Sync for SendCtxRing {}

impl HeldUntilDrained for Arc<SendCtxRing> {}

impl SendCtxRing {
    /// Allocates the ring. `done` handles the completions of its Sends. `buffers` entries have
    /// buffers, those after 0. All of these are released, and the last one counts as used.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map the buffers.
    pub(super) fn new(
        pd: &Arc<Pd>,
        sizes: &SenderSizes,
        buffers: u32,
        done: Done,
    ) -> Result<Arc<Self>> {
        let released = buffers.min(sizes.messages);
        // One entry stays empty: this is how a full ring differs from an empty one.
        let count = sizes.messages.checked_add(1).ok_or(EINVAL)? as usize;
        // `KVVec`: there may be no contiguous memory for so many.
        let mut entries = KVVec::with_capacity(count, GFP_KERNEL)?;
        for index in 0..count {
            let buffer = if (1..=released as usize).contains(&index) {
                Some(new_buffer(pd, sizes.buffer, GFP_KERNEL)?)
            } else {
                None
            };
            let entry = SendCtx::new(sizes, done, buffer)?;
            entries.push(UnsafeCell::new(entry), GFP_KERNEL)?;
        }
        // INVARIANT: I1: nothing is posted.
        let mut ring = UniqueArc::new(
            Self {
                entries,
                released: Atomic::new(released),
                pd: pd.clone(),
                buffer_len: sizes.buffer,
            },
            GFP_KERNEL,
        )?;
        let this = &raw const *ring;
        for (index, entry) in (0..).zip(ring.entries.iter_mut()) {
            let entry = entry.get_mut();
            entry.index = index;
            entry.ring = this;
            set_cqe(&mut entry.request, &raw mut entry.cqe);
        }
        Ok(ring.into())
    }

    /// The domain of the buffers.
    #[inline]
    pub(super) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Allocates another buffer, without waiting for memory.
    #[cold]
    fn another_buffer(&self) -> Option<KBox<DmaBuffer>> {
        new_buffer(&self.pd, self.buffer_len, GFP_NOWAIT).ok()
    }

    /// The index after this one.
    #[inline]
    pub(super) fn next(&self, index: u32) -> u32 {
        match index + 1 {
            next if next as usize == self.entries.len() => 0,
            next => next,
        }
    }

    /// The index of the last entry that was released.
    #[inline]
    pub(super) fn released(&self) -> u32 {
        // Pairs with the store in `release`: entries up to this one are the sender's.
        self.released.load(Acquire)
    }

    /// The entry after `head`, the last one that was used, with a buffer, and its index. `None` if
    /// the ring is full, or there is no buffer. `moved` is the last entry whose buffer was moved to
    /// another one: those behind it have buffers, up to `head`.
    ///
    /// # Safety
    ///
    /// The caller is the sender, and uses no entry. `head` is the entry that was posted last, and
    /// `moved` is what the last call has left. Before the first call, `head` is the entry that
    /// counts as used, and `moved` is 0.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the caller is the entry's only user")]
    pub(super) unsafe fn begin(&self, head: u32, moved: &mut u32) -> Option<(u32, &mut SendCtx)> {
        let (index, released) = (self.next(head), self.released());
        if index == released {
            return None;
        }
        // SAFETY: The entry is not posted: it is behind the one that was posted last, and before
        // the one that was released last. The caller uses no other.
        let entry = unsafe { self.entry(index) };
        if !entry.has_buffer() {
            let next = self.next(*moved);
            if *moved == released || next == index {
                entry.set_buffer(self.another_buffer()?);
            } else {
                *moved = next;
                // SAFETY: The entry is not posted: it is no later than the one that was released
                // last. It is another one than `entry`.
                entry.take_buffer_of(unsafe { self.entry(next) });
            }
        }
        Some((index, entry))
    }

    /// The entry at this index.
    ///
    /// # Safety
    ///
    /// The caller is the only user of the entry: the sender of one that is not posted, the send
    /// queue's worker of one that has completed and is not released.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the caller is the entry's only user")]
    pub(super) unsafe fn entry(&self, index: u32) -> &mut SendCtx {
        // PANIC: `next` does not leave the ring.
        // SAFETY: By this function's contract.
        unsafe { &mut *self.entries[index as usize].get() }
    }

    /// The ring and the index of the entry with this CQE.
    ///
    /// # Safety
    ///
    /// `cqe` is that of an entry whose ring is not freed within `'a`.
    #[inline]
    pub(super) unsafe fn of_cqe<'a>(cqe: *mut bindings::ib_cqe) -> (&'a Self, u32) {
        let entry = cqe.cast::<SendCtx>();
        // SAFETY: The CQE is the first member of its entry, and `ring` is valid (I3 of `SendCtx`).
        unsafe { (&*(*entry).ring, (*entry).index) }
    }

    /// Releases the entries up to `last`.
    ///
    /// # Safety
    ///
    /// The caller is the send queue's worker, and the Send of entry `last` has succeeded. A flushed
    /// one will not do: it may be reported before Sends that were posted before it.
    #[inline]
    pub(super) unsafe fn release(&self, last: u32) {
        let mut index = self.released.load(Relaxed);
        while index != last {
            index = self.next(index);
            // SAFETY: Posted no later than `last`, hence completed, and released below. The caller
            // is the worker.
            let entry = unsafe { self.entry(index) };
            if entry.has_pages() {
                entry.drop_pages();
            }
        }
        self.released.store(last, Release);
    }
}

fn new_buffer(pd: &Arc<Pd>, len: usize, flags: Flags) -> Result<KBox<DmaBuffer>> {
    let buffer = DmaBuffer::new(pd, len, Direction::ToDevice, flags)?;
    Ok(KBox::new(buffer, flags)?)
}
