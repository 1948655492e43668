// SPDX-License-Identifier: GPL-2.0

//! One end of a connection: the cm_id, the queues, and the state of the client or server.
//!
//! C: verbs.c, rpcrdma_ep_create(), rpcrdma_ep_destroy()
//! C: xprt_rdma.h, struct rpcrdma_ep
//! C: svc_rdma_transport.c, svc_rdma_free()
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! An [`EndpointBox`] alone owns its endpoint, without a reference count. Dropping the box
//!
//! 1. stops the events of the cm_id,
//! 2. disconnects and drains the QP, with everything still in place for the handlers,
//! 3. destroys the QP and the cm_id, and
//! 4. drops the context.
//!
//! A handler may therefore use the whole endpoint while it runs.

use core::{
    ffi::c_void,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::from_err_ptr,
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::ordering::{
            Acquire,
            Release, //
        },
        Arc,
        Mutex,
        SpinLock, //
    }, //
};

use crate::{
    bindings,
    lib::{
        fence::FencesOnDrop,
        memalloc::NoIo,
        sockaddr::Net,
        sync::{
            Atomic,
            SetOnce, //
        }, //
    },
    trace::Cid,
    verbs::device::{
        attrs::{
            DeviceAttrs,
            QueueDepths, //
        },
        ib_client::{
            DeviceName,
            RemovalNotifier, //
        },
        local_inv::ConnectionInvs,
        pd::Pd,
        queues::Queues, //
    }, //
};

use super::{
    bad_wr::BadWr,
    closing::Closing,
    completion::handler,
    events,
    ops::{
        EndpointOps,
        SendSide, //
    },
    recv_ctxt::{
        RecvBatch,
        RecvBuf, //
    }, //
};

/// An object that posted work requests may refer to, see [`Endpoint::hold_until_drained`].
pub(in crate::verbs) trait HeldUntilDrained: Send + Sync + 'static {
    /// Releases what only the QP needed.
    ///
    /// # Safety
    ///
    /// The drop of the endpoint that holds the object calls this, when the QP has been drained and
    /// destroyed: no reference to the endpoint is in use, and no completion handler runs any more.
    unsafe fn queues_ended(&self) {}
}

/// One end of a connection, or a listener. See the [module documentation](self).
///
/// # Invariants
///
/// - I1: `id` is valid, and its context is this endpoint, until [`EndpointBox`] is dropped.
/// - I2: Once set, `open` has the QP of `id` and the number of its domain. The contexts of the QP
///   and its CQs are this endpoint.
/// - I3: After `closing` was set under the handler lock of `id`, no CM event reaches the context.
#[pin_data]
pub(crate) struct Endpoint<C: EndpointOps> {
    opening: Atomic<bool>,
    open: SetOnce<Open>,
    closing: Closing,
    /// Held while a thread posts registrations of exposed MRs. An invalidation takes the lock
    /// before the MR is reused, and so waits until that thread has left `ib_post_send()`.
    #[pin]
    pub(in crate::verbs) exposing: SpinLock<()>,
    /// Objects that posted work requests refer to. Dropped after the queues.
    #[pin]
    held: Mutex<KVec<KBox<dyn HeldUntilDrained>>>,
    #[pin]
    context: C,
    #[pin]
    send_side: C::SendSide,
    id: CmId,
}

/// The part of an endpoint that [`Endpoint::open`] adds.
struct Open {
    notifier: RemovalNotifier,
    queues: Queues,
    /// The number of the protection domain.
    pd_id: u64,
    /// See [`DeviceAttrs::registers_to_read`].
    registers_to_read: bool,
    /// The pages that an `rdma_rw` context may touch.
    rw_ctx_pages: u32,
    invs: ConnectionInvs,
}

/// A cm_id that has no other owner, and delivers no event before an endpoint owns it.
pub(super) struct CmId(NonNull<bindings::rdma_cm_id>);

impl CmId {
    /// # Safety
    ///
    /// `id` is valid and the caller owns it. It delivers no event before an endpoint owns it.
    pub(super) unsafe fn from_raw(id: NonNull<bindings::rdma_cm_id>) -> Self {
        Self(id)
    }
}

// SAFETY: The functions of the CM may be called from any thread, and the cm_id stays valid until
// its owner destroys it.
unsafe impl Send for CmId {}
// SAFETY: As above.
unsafe impl Sync for CmId {}

/// The owner of an endpoint. Dropping it sleeps.
pub(crate) struct EndpointBox<C: EndpointOps>(Pin<KBox<Endpoint<C>>>);

impl<C: EndpointOps> Endpoint<C> {
    /// Creates an endpoint that can connect.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of `context` or of the CM.
    pub(crate) fn create(net: Net, context: impl PinInit<C, Error>) -> Result<EndpointBox<C>> {
        Self::with_id(context, || {
            // SAFETY: `net` is a reference to a namespace.
            let id = from_err_ptr(unsafe {
                bindings::__rdma_create_kernel_id(
                    net.as_ptr(),
                    Some(events::cm_handler::<C>),
                    ptr::null_mut(),
                    bindings::rdma_ucm_port_space_RDMA_PS_TCP,
                    bindings::ib_qp_type_IB_QPT_RC,
                    c"rpcrdma".to_bytes_with_nul().as_ptr(),
                )
            })?;
            // SAFETY: Just created. The CM delivers no event before the first request.
            Ok(unsafe { CmId::from_raw(NonNull::new(id).ok_or(ENOMEM)?) })
        })
    }

    /// Creates an endpoint for the cm_id that `id` returns.
    ///
    /// `id` is called last: if it succeeds, so does this function.
    pub(super) fn with_id(
        context: impl PinInit<C, Error>,
        id: impl FnOnce() -> Result<CmId>,
    ) -> Result<EndpointBox<C>> {
        let ep = KBox::try_pin_init(
            try_pin_init!(Self {
                opening: Atomic::new(false),
                open: SetOnce::new(),
                closing: Closing::new(),
                exposing <- new_spinlock!((), "Endpoint::exposing"),
                held <- new_mutex!(KVec::new(), "Endpoint::held"),
                context <- context,
                send_side <- C::SendSide::new(),
                id: id()?,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The cm_id is valid and delivers no event yet, by the contract of `CmId`.
        // INVARIANT: I1: the endpoint is pinned, and dropping its box destroys the cm_id.
        unsafe {
            (*ep.id()).context = ep.as_context();
            (*ep.id()).event_handler = Some(events::cm_handler::<C>);
        }
        Ok(EndpointBox(ep))
    }

    /// The cm_id, valid until the endpoint is dropped (I1).
    #[inline]
    pub(in crate::verbs) fn id(&self) -> *mut bindings::rdma_cm_id {
        self.id.0.as_ptr()
    }

    /// The part of the sending side that the endpoint owns: the same at each call.
    #[inline]
    pub(in crate::verbs) fn send_side(&self) -> &C::SendSide {
        &self.send_side
    }

    /// The context pointer of this endpoint's cm_id, QP and CQs.
    fn as_context(&self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// The state of the client or server.
    #[inline]
    pub(crate) fn context(&self) -> &C {
        &self.context
    }

    /// Creates the protection domain and the queues.
    ///
    /// If this fails, the caller may try again with other depths.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no device, `EBUSY` if the endpoint is open or being opened, `ENOMEM`,
    /// or the device's error. Devices return `ENOMEM` or `EINVAL` for queues that take too much of
    /// their memory, although each depth is within its limit.
    pub(crate) fn open(&self, want: &QueueDepths) -> Result<QueueDepths> {
        if self.opening.xchg(true, Acquire) {
            return Err(EBUSY);
        }
        self.try_open(want)
            .inspect_err(|_| self.opening.store(false, Release))
    }

    /// Opens the endpoint. Called by the thread that has set `opening`.
    fn try_open(&self, want: &QueueDepths) -> Result<QueueDepths> {
        let pd = Pd::new(self.device_ref()?, C::buffers())?;
        let pd_id = pd.id();
        let port = self.port();
        let device = DeviceAttrs::query(pd.device_ref(), port);
        let arg = self.as_context();
        // SAFETY: The endpoint is pinned, and ends the notifier before it is freed.
        let notifier = unsafe { pd.device_ref().notify(self)? };
        // SAFETY: The cm_id is bound to the domain's device. `qp_event` and the completion handlers
        // of all that this module posts expect the endpoint, which destroys the QP and frees the
        // CQs before it is freed.
        let queues = unsafe { Queues::new(self.id(), pd, want, arg, events::qp_event::<C>, port)? };
        let depths = *queues.depths();
        let rw_ctx_pages = match depths.rdma_ctxs {
            0 => u32::MAX,
            _ => device.rw_mr_pages(),
        };
        // INVARIANT: I2: as just created. `open` is not set: `opening` stays set from here on.
        self.open.populate(Open {
            notifier,
            queues,
            pd_id,
            registers_to_read: device.registers_to_read,
            rw_ctx_pages,
            invs: ConnectionInvs::new(),
        });
        Ok(depths)
    }

    /// The protection domain, once open.
    #[inline]
    pub(crate) fn pd(&self) -> Option<&Arc<Pd>> {
        self.open.as_ref().map(|o| o.queues.pd())
    }

    /// Returns whether `pd` is this endpoint's domain. Memory that is mapped for another domain may
    /// be mapped for another device.
    #[inline]
    pub(in crate::verbs) fn owns(&self, pd: &Arc<Pd>) -> bool {
        self.pd().is_some_and(|own| Arc::ptr_eq(own, pd))
    }

    /// Holds `object`, which work requests may refer to, until the QP is drained and destroyed.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(in crate::verbs) fn hold_until_drained(&self, object: impl HeldUntilDrained) -> Result {
        // Memory reclaim may wait for this connection.
        let _noio = NoIo::begin();
        let object: KBox<dyn HeldUntilDrained> = KBox::new(object, GFP_KERNEL)?;
        Ok(self.held.lock().push(object, GFP_KERNEL)?)
    }

    /// Posts Receives.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the endpoint is not open or is closing, or if a buffer is mapped for another
    /// endpoint; or the device's error. The buffers that were not posted come with it.
    #[inline]
    pub(crate) fn post_recv(
        &self,
        batch: RecvBatch<C::RecvData>,
    ) -> Result<(), (Error, RecvBatch<C::RecvData>)> {
        let Some(open) = self.postable() else {
            return Err((EINVAL, batch));
        };
        let done = handler::<C, RecvBuf<C::RecvData>>();
        // SAFETY: The endpoint drains its QP before its domain ends. The handler passes completions
        // to `RecvBuf::complete`, and finds this endpoint (I2).
        let posted = unsafe { batch.post(open.queues.qp(), open.queues.pd(), done) };
        self.closing.posted();
        posted
    }

    /// Returns whether the endpoint is being dropped.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.has_begun()
    }

    /// Returns the queues if work may be posted: the queues are open, and the endpoint is not
    /// closing. The caller calls [`Closing::posted`] after the post.
    #[inline]
    fn postable(&self) -> Option<&Open> {
        self.open.as_ref().filter(|_| !self.closing.has_begun())
    }

    /// The QP, once open.
    #[inline]
    pub(in crate::verbs) fn qp(&self) -> Option<NonNull<bindings::ib_qp>> {
        self.open.as_ref().and_then(|o| NonNull::new(o.queues.qp()))
    }

    /// The number of the QP's domain, 0 before the endpoint is open. No other QP ever has it.
    #[inline]
    pub(in crate::verbs) fn pd_id(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.pd_id)
    }

    /// The QP, if `pd_id` is the number of its domain.
    #[inline]
    pub(in crate::verbs) fn qp_of(&self, pd_id: u64) -> Option<NonNull<bindings::ib_qp>> {
        let open = self.open.as_ref().filter(|open| open.pd_id == pd_id)?;
        NonNull::new(open.queues.qp())
    }

    /// Returns whether memory must be registered to be the target of an RDMA Read.
    #[inline]
    pub(crate) fn registers_to_read(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.registers_to_read)
    }

    /// Returns whether the core has allocated MRs for `rdma_rw` contexts on this QP.
    pub(in crate::verbs) fn has_rw_mrs(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|o| o.queues.depths().rdma_ctxs > 0)
    }

    /// The number of pages that an `rdma_rw` context may touch: those that an MR covers, if the QP
    /// has MRs for such contexts. The core divides a context among MRs by the entries of its
    /// mapping, and fails if the entries of one MR have more pages than the MR. A run of pages is
    /// one entry, and the IOMMU may merge runs. Writes on iWARP have the same limit: with
    /// `ib_core.force_mr`, a parameter that the core does not export, they take MRs, too.
    #[inline]
    pub(in crate::verbs) fn rw_ctx_pages(&self) -> u32 {
        self.open
            .as_ref()
            .map_or(u32::MAX, |open| open.rw_ctx_pages)
    }

    /// Posts a chain of work requests to the Send Queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the endpoint is not open or is closing, or the device's error, with the part of
    /// the chain that was not posted.
    ///
    /// # Safety
    ///
    /// The chain is well formed. It stays in place until it has completed, and so does all that it
    /// refers to. Each `wr_cqe` is null, or has a `done` that expects an `Endpoint<C>` in
    /// `cq_context`.
    #[inline]
    pub(in crate::verbs) unsafe fn post_send_raw(
        &self,
        first: *const bindings::ib_send_wr,
    ) -> Result<(), (Error, BadWr)> {
        let Some(open) = self.postable() else {
            return Err((EINVAL, BadWr::First));
        };
        let mut bad = ptr::null();
        // SAFETY: The QP is valid while the endpoint is open (I2). The chain is well formed and
        // stays in place by this function's contract.
        let ret = unsafe { bindings::rpcrdma_post_send(open.queues.qp(), first, &mut bad) };
        self.closing.posted();
        match ret {
            0 => Ok(()),
            // SAFETY: If the device names a work request, it has not posted the last one. The chain
            // is in place until that has completed.
            ret => Err((Error::from_errno(ret), unsafe { BadWr::of(first, bad) })),
        }
    }

    /// Notes that the device has accepted LOCAL_INVs.
    #[inline]
    pub(in crate::verbs) fn inv_accepted(&self) {
        if let Some(open) = self.open.as_ref() {
            open.queues.pd().device_ref().accepts_inv(&open.invs);
        }
    }

    /// Notes that a post of LOCAL_INVs has failed with `error`. May sleep.
    ///
    /// A driver without LOCAL_INV returns `EINVAL`, and so do some drivers on a QP in the error
    /// state, whatever is posted. A QP does not leave that state: one that can send afterwards
    /// could send before.
    #[cold]
    pub(in crate::verbs) fn inv_failed(&self, error: Error) {
        let Some(open) = self.open.as_ref() else {
            return;
        };
        if error == EINVAL && !self.is_closing() && Self::can_send(open) {
            open.queues.pd().device_ref().refuses_inv(&open.invs);
        }
    }

    /// Returns whether the QP can send, according to its device. May sleep.
    fn can_send(open: &Open) -> bool {
        let mut attr = bindings::ib_qp_attr::default();
        let mut init_attr = bindings::ib_qp_init_attr::default();
        let mask = bindings::ib_qp_attr_mask_IB_QP_STATE as c_int;
        // Called by CQ workers, too: memory reclaim may wait for the completions that they handle.
        let _noio = NoIo::begin();
        // SAFETY: The QP is valid while the endpoint is open (I2). The device writes to the two
        // structures only.
        let ret =
            unsafe { bindings::ib_query_qp(open.queues.qp(), &mut attr, mask, &mut init_attr) };
        ret == 0 && attr.qp_state == bindings::ib_qp_state_IB_QPS_RTS
    }

    /// The name of the device, once open.
    pub(crate) fn device_name(&self) -> Option<DeviceName> {
        self.pd().map(|pd| pd.device_ref().device_name())
    }

    /// The completion id of Receive `id`, for trace events.
    pub(crate) fn recv_cid(&self, id: i32) -> Cid {
        let queue = self.recv_cq_id();
        Cid { queue, id }
    }

    /// The completion id of work request `id` on the Send Queue, for trace events.
    pub(crate) fn send_cid(&self, id: i32) -> Cid {
        let queue = self.send_cq_id();
        Cid { queue, id }
    }

    /// Identifies the receive CQ in trace events; 0 before the endpoint is open.
    pub(crate) fn recv_cq_id(&self) -> u32 {
        self.open.as_ref().map_or(0, |o| o.queues.recv_cq_id())
    }

    /// Identifies the send CQ in trace events; 0 before the endpoint is open.
    pub(crate) fn send_cq_id(&self) -> u32 {
        self.open.as_ref().map_or(0, |o| o.queues.send_cq_id())
    }
}

impl<C: EndpointOps> Deref for EndpointBox<C> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        &self.0
    }
}

// SAFETY: The drop destroys the QP, and then unmaps the MRs that are still registered.
unsafe impl<C: EndpointOps> FencesOnDrop for EndpointBox<C> {}

impl<C: EndpointOps> Drop for EndpointBox<C> {
    fn drop(&mut self) {
        // Handlers hold shared references until `rdma_destroy_id` returns, so use a shared one
        // here.
        let this: &Endpoint<C> = self;
        let id = this.id();
        // `cm_handler` reads `closing` under this lock, so it reports nothing from here on. The
        // request handlers of a listener on a wildcard address hold the lock of another cm_id:
        // `rdma_destroy_id` below waits for these handlers.
        // SAFETY: The cm_id is valid (I1). `EndpointOps` forbids its handlers to drop the endpoint,
        // so this thread does not hold the lock.
        // INVARIANT: I3: under the lock.
        unsafe {
            bindings::rdma_lock_handler(id);
            this.closing.begin();
            bindings::rdma_unlock_handler(id);
        }
        this.disconnect();
        if let Some(open) = this.open.as_ref() {
            open.notifier.end();
            // SAFETY: The QP is destroyed below.
            unsafe { open.queues.drain() };
            // Only completion handlers could post: this thread owns the endpoint, and the cm_id and
            // the notifier are silent. Handlers that found the endpoint open have returned.
            if this.closing.has_overtaken() {
                // SAFETY: As above.
                unsafe { open.queues.drain() };
            }
            C::drained(&Drained(this));
            // SAFETY: The QP is that of the cm_id (I2), and is drained.
            unsafe { bindings::rdma_destroy_qp(id) };
            for object in this.held.lock().iter() {
                // SAFETY: As required: the QP is gone, and this has the only reference.
                unsafe { object.queues_ended() };
            }
            // SAFETY: The QP was just destroyed. The pools in `held` have unmapped the MRs.
            unsafe { open.queues.pd().set_fenced() };
        }
        // SAFETY: The cm_id is valid (I1), has no QP any more, and is not used after this.
        unsafe { bindings::rdma_destroy_id(id) };
    }
}

/// Proof that the QP of an endpoint is drained: nothing is posted, and nothing will be.
pub(crate) struct Drained<'a, C: EndpointOps>(&'a Endpoint<C>);

impl<C: EndpointOps> Deref for Drained<'_, C> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        self.0
    }
}
