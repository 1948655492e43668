// SPDX-License-Identifier: GPL-2.0

//! RDMA Read and Write: work requests that the RDMA core prepares for whatever the device demands.
//!
//! A [`RwCtxt`] moves bytes between one segment of a peer's memory and a run of pieces of this
//! end's, which it does not own: see [`RwChain`](super::rw_chain::RwChain), in which transfers
//! are collected.

use core::{
    ffi::c_void,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    alloc::Flags,
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

use crate::{
    bindings,
    lib::{
        bvec::{
            BVec,
            PAGE, //
        },
        gfp::Gfp,
        llist_box::LlistBox, //
    },
    verbs::{
        device::{
            dma_buf::Direction,
            query::note_core_registers_all, //
        },
        endpoint::{
            completion::Done,
            ep::Endpoint,
            ops::EndpointOps, //
        }, //
    }, //
};

/// A place in a peer's memory.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    /// The handle that the peer exposed it under.
    pub(crate) handle: u32,
    /// The address, in the terms of the handle.
    pub(crate) offset: u64,
}

/// Neighbouring pages are handed to the device as one run up to this length: a good deal more would
/// not fit the bounce buffers that some machines put between memory and device. Those have 256 KiB,
/// however large a page is.
const MAX_RUN: u32 = if PAGE > 64 << 10 { PAGE } else { 64 << 10 };

/// Where the device reads into regions, the core has room in them for as many pages as there are
/// runs.
const RUN_IN_MR: u32 = PAGE;

/// Why the core did not prepare a transfer. If regions are what it misses, the next connections
/// have some.
#[cold]
fn refused<C: EndpointOps>(ep: &Endpoint<C>, ret: c_int) -> Error {
    let error = Error::from_errno(ret);
    if error == EAGAIN && !ep.has_rw_mrs() {
        note_core_registers_all();
    }
    error
}

/// What is left with the last transfer of a chain that is posted by itself, for the handler of its
/// end.
#[derive(Clone, Copy)]
pub(in crate::verbs) struct Armed {
    /// What travels with the chain.
    pub(in crate::verbs) companion: *mut c_void,
    /// Entries of the Send Queue that it took.
    pub(in crate::verbs) entries: u32,
    /// When it was posted, if somebody wants to know.
    pub(in crate::verbs) posted: Option<Instant<Monotonic>>,
}

/// Memory to prepare a transfer in.
///
/// # Invariants
///
/// From [`Self::prepare`] to [`Self::unmap`], `context` is initialised with `vecs`, which stay as
/// they are.
pub(in crate::verbs) struct RwCtxt {
    /// For the last transfer of a chain that is posted by itself.
    cqe: bindings::ib_cqe,
    armed: Armed,
    context: bindings::rdma_rw_ctx,
    vecs: KVec<bindings::bio_vec>,
}

// SAFETY: A transfer owns all that it points to, but for its companion, which is left there for a
// completion handler, on whatever processor that runs.
unsafe impl Send for RwCtxt {}

/// What a transfer comes to.
pub(in crate::verbs) struct RwCost {
    /// Bytes that it moves; if there are none, it is not prepared.
    pub(in crate::verbs) bytes: u32,
    /// Entries of the Send Queue that it takes.
    pub(in crate::verbs) entries: u32,
}

impl RwCtxt {
    pub(in crate::verbs) fn new(flags: Flags) -> Result<LlistBox<Self>> {
        // INVARIANT: Not prepared.
        Ok(LlistBox::new_uninit(flags)?.write(Self {
            cqe: bindings::ib_cqe { done: None },
            armed: Armed {
                companion: ptr::null_mut(),
                entries: 0,
                posted: None,
            },
            context: pin_init::zeroed(),
            vecs: KVec::new(),
        }))
    }

    /// Prepares the transfer of `bvecs`, about `count` of them, to or from `remote`. Without
    /// pieces it comes to nothing.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the bytes cannot be counted, or the endpoint is not open; `ENOMEM`, or what the
    /// core reports, if the device cannot map the memory. Then it is not prepared.
    ///
    /// # Safety
    ///
    /// The transfer is not prepared already. Until it is unmapped, the memory stays.
    #[inline]
    pub(in crate::verbs) unsafe fn prepare<'p, C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        direction: Direction,
        count: usize,
        bvecs: impl Iterator<Item = BVec<'p>>,
        remote: Remote,
        gfp: Gfp,
    ) -> Result<RwCost> {
        let qp = ep.qp().ok_or(EINVAL)?;
        let most = match direction {
            Direction::FromDevice if ep.registers_to_read() => RUN_IN_MR,
            _ => MAX_RUN,
        };
        let bytes = self.fill(count, bvecs, most, gfp.flags())?;
        if bytes == 0 {
            return Ok(RwCost { bytes, entries: 0 });
        }
        let iter = bindings::bvec_iter {
            bi_size: bytes,
            ..Default::default()
        };
        // SAFETY: The vectors name as many bytes of memory that stays, by this function's
        // contract. The queue pair is on the endpoint's port, and alive, since the endpoint is.
        let ret = gfp.scope(|| unsafe {
            bindings::rdma_rw_ctx_init_bvec(
                &mut self.context,
                qp.as_ptr(),
                ep.port(),
                self.vecs.as_ptr(),
                // CAST: Fewer than the pages of a message.
                self.vecs.len() as u32,
                iter,
                remote.offset,
                remote.handle,
                direction.as_raw(),
            )
        });
        let entries = u32::try_from(ret).map_err(|_| refused(ep, ret))?;
        // INVARIANT: It did not fail: initialised with the vectors.
        Ok(RwCost { bytes, entries })
    }

    /// Names the memory of `bvecs`, about `count` of them, neighbours together in runs of up to
    /// `most` bytes; returns how many bytes that is, or `EINVAL` if they cannot be counted.
    #[inline]
    fn fill<'p>(
        &mut self,
        count: usize,
        bvecs: impl Iterator<Item = BVec<'p>>,
        most: u32,
        flags: Flags,
    ) -> Result<u32> {
        self.vecs.clear();
        self.vecs.reserve(count, flags)?;
        let mut bytes = 0_u32;
        for bvec in bvecs {
            bytes = bytes.checked_add(bvec.len()).ok_or(EINVAL)?;
            match self.vecs.last_mut() {
                Some(last) if last.bv_len + bvec.len() <= most && follows(last, &bvec) => {
                    last.bv_len += bvec.len();
                }
                _ => {
                    let vec = bindings::bio_vec {
                        bv_page: bvec.page(),
                        bv_len: bvec.len(),
                        bv_offset: bvec.offset(),
                    };
                    // There is room for about as many. Unlike `push`, this becomes inline code.
                    if self.vecs.push_within_capacity(vec).is_err() {
                        self.vecs.push(vec, flags)?;
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// Links the work requests in front of `then`, which may be null; returns the first. If `then`
    /// is null, the last one is signalled, by the transfer's own `cqe`.
    ///
    /// # Safety
    ///
    /// `this` is prepared for `qp` on `port`, and nobody else uses it. `then` stays until the chain
    /// has completed.
    #[inline]
    pub(in crate::verbs) unsafe fn link(
        this: NonNull<Self>,
        qp: *mut bindings::ib_qp,
        port: u32,
        then: *mut bindings::ib_send_wr,
    ) -> *mut bindings::ib_send_wr {
        let this = this.as_ptr();
        // SAFETY: By this function's contract and the type's invariants.
        unsafe {
            bindings::rdma_rw_ctx_wrs(
                &raw mut (*this).context,
                qp,
                port,
                &raw mut (*this).cqe,
                then,
            )
        }
    }

    /// Has its end reported to `done`, which finds `armed`: see [`Self::completed`].
    #[inline]
    pub(in crate::verbs) fn arm(&mut self, done: Done, armed: Armed) {
        self.cqe.done = Some(done);
        self.armed = armed;
    }

    /// For a completion handler: what was left for it.
    ///
    /// # Safety
    ///
    /// `cqe` is that of a transfer that was [armed](Self::arm), and not released since.
    #[inline]
    pub(in crate::verbs) unsafe fn completed(cqe: *mut bindings::ib_cqe) -> Armed {
        // SAFETY: By this function's contract.
        unsafe { (*kernel::container_of!(cqe, Self, cqe)).armed }
    }

    /// Unmaps the memory.
    ///
    /// # Safety
    ///
    /// `this` is prepared for `qp`, which is alive, on `port` and in `direction`. Nobody else uses
    /// it: it is not posted.
    #[inline]
    pub(in crate::verbs) unsafe fn unmap(
        this: NonNull<Self>,
        qp: *mut bindings::ib_qp,
        port: u32,
        direction: Direction,
    ) {
        let this = this.as_ptr();
        // SAFETY: By this function's contract and the type's invariants.
        unsafe {
            bindings::rdma_rw_ctx_destroy_bvec(
                &raw mut (*this).context,
                qp,
                port,
                (*this).vecs.as_ptr(),
                (*this).vecs.len() as u32,
                direction.as_raw(),
            );
        }
    }
}

/// Whether `bvec` is the memory right behind `run`.
#[inline]
fn follows(run: &bindings::bio_vec, bvec: &BVec<'_>) -> bool {
    let end = run.bv_offset + run.bv_len;
    // With a virtual memory map, the descriptors of neighbouring pages are neighbours.
    cfg!(CONFIG_SPARSEMEM_VMEMMAP)
        && bvec.offset() == 0
        && end % PAGE == 0
        && run.bv_page.wrapping_add((end / PAGE) as usize) == bvec.page()
}
