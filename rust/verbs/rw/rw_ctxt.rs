// SPDX-License-Identifier: GPL-2.0

//! RDMA Read and RDMA Write of one segment of the peer's memory.
//!
//! C: svc_rdma_rw.c, struct svc_rdma_rw_ctxt, svc_rdma_get_rw_ctxt(), svc_rdma_rw_ctx_init()
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)
//!
//! The RDMA core turns a transfer into the work requests that the device needs: it may register the
//! local memory first. A context does not own that memory.

use core::{
    ffi::c_void,
    ptr::NonNull, //
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
        bvec::BVecs,
        gfp::Gfp,
        llist_box::LlistBox,
        pool::Pool, //
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

use super::{
    remote::Remote,
    run,
    runs::Runs, //
};

/// Converts an error of the core. If the core lacks MRs on this QP, later connections have some.
#[cold]
fn refused<C: EndpointOps>(ep: &Endpoint<C>, ret: c_int) -> Error {
    let error = Error::from_errno(ret);
    if error == EAGAIN && !ep.has_rw_mrs() {
        note_core_registers_all();
    }
    error
}

/// The argument of the completion handler of a chain that [`RwCtxt::set_done`] was called for.
#[derive(Clone, Copy)]
pub(in crate::verbs) struct DoneArg {
    /// A pointer for the handler.
    pub(in crate::verbs) context: NonNull<c_void>,
    /// The number of Send Queue entries of the chain.
    pub(in crate::verbs) entries: u32,
    /// The time of the post, if a trace event reports it.
    pub(in crate::verbs) posted: Option<Instant<Monotonic>>,
}

/// The context of a transfer. It can be used again after [`Self::unmap`].
///
/// # Invariants
///
/// - I1: From [`Self::prepare`] to [`Self::unmap`], `ctx` is initialised with `runs`, which do not
///   change.
pub(in crate::verbs) struct RwCtxt {
    /// The completion, if this transfer is the last one of its chain and nothing follows.
    cqe: bindings::ib_cqe,
    arg: DoneArg,
    ctx: bindings::rdma_rw_ctx,
    runs: Runs,
}

// SAFETY: `ctx` points to memory of the core that belongs to it, and `runs` to pages that stay for
// as long as the transfer is prepared. Neither depends on the thread. `arg.context` is only passed
// on to the completion handler.
unsafe impl Send for RwCtxt {}

/// Idle transfers of one connection.
#[pin_data]
pub(crate) struct RwCtxtPool {
    #[pin]
    pub(super) idle: Pool<LlistBox<RwCtxt>>,
}

impl RwCtxtPool {
    /// Creates an empty pool.
    pub(in crate::verbs) fn new() -> impl PinInit<Self> {
        pin_init!(Self { idle <- Pool::new() })
    }
}

/// A context that moves data by RDMA Read and RDMA Write.
pub(crate) trait RwOps: EndpointOps {
    /// Idle transfers.
    fn rw_ctxts(ep: &Endpoint<Self>) -> &RwCtxtPool;
}

/// The size of a prepared transfer.
pub(in crate::verbs) struct RwCost {
    /// The number of bytes. A transfer of zero bytes is not prepared.
    pub(in crate::verbs) bytes: u32,
    /// The number of Send Queue entries.
    pub(in crate::verbs) entries: u32,
}

impl RwCtxt {
    /// Allocates a context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(in crate::verbs) fn new(flags: Flags) -> Result<LlistBox<Self>> {
        // INVARIANT: I1: not prepared.
        Ok(LlistBox::new_uninit(flags)?.write(Self {
            cqe: bindings::ib_cqe { done: None },
            arg: DoneArg {
                context: NonNull::dangling(),
                entries: 0,
                posted: None,
            },
            ctx: pin_init::zeroed(),
            runs: Runs::new(),
        }))
    }

    /// Prepares the transfer of `bvecs`, at most `count`, to or from `remote`. If there are none,
    /// nothing is prepared. More than [`Endpoint::rw_ctx_pages`] of them may not fit their MRs.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more of them, the bytes overflow a `u32`, or the endpoint is not open;
    /// `ENOMEM`, or the error of the core, if the memory cannot be mapped. The transfer is then not
    /// prepared.
    ///
    /// # Safety
    ///
    /// The context is not prepared. The memory stays until [`Self::unmap`].
    #[inline]
    pub(in crate::verbs) unsafe fn prepare<'p, C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        direction: Direction,
        count: usize,
        bvecs: impl BVecs<'p>,
        remote: Remote,
        gfp: Gfp,
    ) -> Result<RwCost> {
        let qp = ep.qp().ok_or(EINVAL)?;
        let bytes = self.runs.fill(count, bvecs, gfp.flags())?;
        if bytes == 0 {
            return Ok(RwCost { bytes, entries: 0 });
        }
        let (qp, port, direction) = (qp.as_ptr(), ep.port(), direction.as_raw());
        // SAFETY: `runs` describe `bytes` bytes of memory, which stays by this function's contract.
        // The endpoint is borrowed, so its QP is valid, and `port` is that of the QP.
        let ret = gfp.scope(|| unsafe {
            let runs = self.runs.as_mut_slice();
            run::init(runs, &mut self.ctx, qp, port, bytes, remote, direction)
        });
        let entries = u32::try_from(ret).map_err(|_| refused(ep, ret))?;
        // INVARIANT: I1: the core has initialised `ctx` with `runs`.
        Ok(RwCost { bytes, entries })
    }

    /// Links the work requests of the transfer in front of `then`. Returns the first.
    ///
    /// If `then` is null, the last work request is signalled, with the `cqe` of this transfer.
    ///
    /// # Safety
    ///
    /// The transfer is prepared for `qp` on `port`. `then` stays in place until the chain has
    /// completed.
    #[inline]
    pub(super) unsafe fn link(
        &mut self,
        qp: *mut bindings::ib_qp,
        port: u32,
        then: *mut bindings::ib_send_wr,
    ) -> *mut bindings::ib_send_wr {
        // SAFETY: `ctx` is initialised for `qp` (I1), and all else by this function's contract.
        unsafe { bindings::rdma_rw_ctx_wrs(&mut self.ctx, qp, port, &mut self.cqe, then) }
    }

    /// Sets the handler of this transfer's completion, which gets `arg` by [`Self::done_arg`].
    #[inline]
    pub(super) fn set_done(&mut self, done: Done, arg: DoneArg) {
        self.cqe.done = Some(done);
        self.arg = arg;
    }

    /// Returns the argument of a completion handler.
    ///
    /// # Safety
    ///
    /// `cqe` is that of a transfer for which [`Self::set_done`] was called, and which has not been
    /// unmapped.
    #[inline]
    pub(in crate::verbs) unsafe fn done_arg(cqe: *mut bindings::ib_cqe) -> DoneArg {
        // SAFETY: By this function's contract.
        unsafe { (*kernel::container_of!(cqe, Self, cqe)).arg }
    }

    /// Unmaps the memory, and frees a long array of `runs`.
    ///
    /// # Safety
    ///
    /// The transfer is prepared for `qp` on `port` and in `direction`, and not posted. `qp` is
    /// valid.
    #[inline]
    pub(super) unsafe fn unmap(
        &mut self,
        qp: *mut bindings::ib_qp,
        port: u32,
        direction: Direction,
    ) {
        // SAFETY: `ctx` is initialised with `runs` (I1), and all else by this function's contract.
        unsafe {
            let runs = self.runs.as_mut_slice();
            run::destroy(runs, &mut self.ctx, qp, port, direction.as_raw());
        }
        // INVARIANT: I1: not prepared any more.
        self.runs.trim();
    }
}
