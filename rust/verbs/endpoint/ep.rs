// SPDX-License-Identifier: GPL-2.0

//! One end of a connection: identifier, queues, and the context that handles what they report.
//!
//! An [`EndpointBox`] owns its endpoint alone. Dropping it silences the identifier, disconnects and
//! drains the queues while everything is still in place, then destroys queue pair and identifier,
//! and drops the context last: a handler can rely on all of it as long as it runs.

use core::{
    cell::Cell,
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
        atomic::{
            ordering::{
                Acquire,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        Arc,
        Mutex,
        SetOnce,
        SpinLock, //
    }, //
};

use crate::{
    bindings,
    lib::{
        memalloc::NoIo,
        sockaddr::Net, //
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
        pd::Pd,
        queues::Queues, //
    }, //
};

use super::{
    bad_wr::BadWr,
    events,
    ops::EndpointOps,
    recv_ctxt::RecvBatch, //
};

/// What work requests may refer to.
pub(in crate::verbs) trait HeldUntilDrained: Send + Sync + 'static {
    /// The queue pair is gone, and no handler runs any more.
    fn queues_ended(&self) {}
}

/// See the [module's](self) description.
///
/// # Invariants
///
/// `id` is valid from before the first event until [`EndpointBox`] is dropped, and its context is
/// this endpoint; likewise the queues, once opened.
#[pin_data]
pub(crate) struct Endpoint<C: EndpointOps> {
    id: Id,
    opening: Atomic<bool>,
    open: SetOnce<Open>,
    closing: Atomic<bool>,
    /// Held from when regions are given out until their registrations are posted.
    #[pin]
    pub(in crate::verbs) exposing: SpinLock<()>,
    /// What the queues' work requests refer to. Goes after them.
    #[pin]
    kept: Mutex<KVec<KBox<dyn HeldUntilDrained>>>,
    #[pin]
    context: C,
}

/// What `open` adds.
struct Open {
    notifier: RemovalNotifier,
    queues: Queues,
    /// See [`DeviceAttrs`].
    registers_to_read: bool,
}

struct Id(Cell<*mut bindings::rdma_cm_id>);

// SAFETY: It is set once, before the endpoint is shared; the connection manager may be called from
// any thread.
unsafe impl Sync for Id {}

/// The one owner of an endpoint. Dropping it sleeps.
///
/// # Invariants
///
/// Points to an endpoint from `KBox`, pinned, that has an identifier.
pub(crate) struct EndpointBox<C: EndpointOps>(NonNull<Endpoint<C>>);

// SAFETY: Like a box of a type that is `Sync` and whose context is `Send`; identifiers and queues
// are not bound to a thread.
unsafe impl<C: EndpointOps> Send for EndpointBox<C> where Endpoint<C>: Sync {}
// SAFETY: Only gives shared references.
unsafe impl<C: EndpointOps> Sync for EndpointBox<C> where Endpoint<C>: Sync {}

/// An endpoint that does not have its identifier yet.
pub(in crate::verbs) struct Unbound<C: EndpointOps>(Pin<KBox<Endpoint<C>>>);

impl<C: EndpointOps> Unbound<C> {
    /// # Safety
    ///
    /// `id` is owned by the caller, who gives it up, and cannot deliver an event during the call.
    pub(in crate::verbs) unsafe fn adopt(self, id: *mut bindings::rdma_cm_id) -> EndpointBox<C> {
        self.0.id.0.set(id);
        // SAFETY: Nothing is moved out of the pinned box until `EndpointBox` frees it in place.
        let endpoint = NonNull::from(KBox::leak(unsafe { Pin::into_inner_unchecked(self.0) }));
        // SAFETY: By this function's contract.
        unsafe {
            (*id).context = endpoint.as_ptr().cast();
            (*id).event_handler = Some(events::cm_handler::<C>);
        }
        // INVARIANT: From a pinned box, with its identifier.
        EndpointBox(endpoint)
    }
}

impl<C: EndpointOps> Endpoint<C> {
    pub(in crate::verbs) fn allocate(context: impl PinInit<C, Error>) -> Result<Unbound<C>> {
        let endpoint = KBox::try_pin_init(
            try_pin_init!(Self {
                id: Id(Cell::new(ptr::null_mut())),
                opening: Atomic::new(false),
                open: SetOnce::new(),
                closing: Atomic::new(false),
                exposing <- new_spinlock!((), "Endpoint::exposing"),
                kept <- new_mutex!(KVec::new(), "Endpoint::kept"),
                context <- context,
            }),
            GFP_KERNEL,
        )?;
        Ok(Unbound(endpoint))
    }

    /// An endpoint that will connect.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what `context` or the connection manager report.
    pub(crate) fn create(net: Net, context: impl PinInit<C, Error>) -> Result<EndpointBox<C>> {
        let endpoint = Self::allocate(context)?;
        // SAFETY: `net` is valid by its own invariants. The context is set below, before the first
        // call that leads to an event.
        let id = from_err_ptr(unsafe {
            bindings::__rdma_create_kernel_id(
                net.as_ptr(),
                Some(events::cm_handler::<C>),
                ptr::null_mut(),
                bindings::rdma_ucm_port_space_RDMA_PS_TCP,
                bindings::ib_qp_type_IB_QPT_RC,
                c"rpcrdma".as_char_ptr(),
            )
        })?;
        // SAFETY: Just made, and silent until asked for something.
        Ok(unsafe { endpoint.adopt(id) })
    }

    /// The identifier; valid, since nobody borrows an endpoint that has none.
    #[inline]
    pub(in crate::verbs) fn id(&self) -> *mut bindings::rdma_cm_id {
        self.id.0.get()
    }

    /// What handles this endpoint's events.
    #[inline]
    pub(crate) fn context(&self) -> &C {
        &self.context
    }

    /// Makes the protection domain and the queues. If that fails, it may be tried with others.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no device, `EBUSY` if it is open, `ENOMEM`, or what the device reports.
    /// That the queues take too much of its memory is `ENOMEM` or `EINVAL`, although each number is
    /// within its limits.
    pub(crate) fn open(&self, want: &QueueDepths) -> Result<QueueDepths> {
        if self.opening.xchg(true, Acquire) {
            return Err(EBUSY);
        }
        self.try_open(want)
            .inspect_err(|_| self.opening.store(false, Release))
    }

    /// For the one caller that has set `opening`.
    fn try_open(&self, want: &QueueDepths) -> Result<QueueDepths> {
        let pd = Pd::new(self.device_ref()?, C::BUFFERS)?;
        let port = self.port();
        // SAFETY: The domain keeps the device.
        let device = unsafe { DeviceAttrs::query(pd.device(), port) };
        let owner = ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: The endpoint is pinned, and the notice is dropped before it ends.
        let notifier = unsafe { pd.device_ref().notify(owner, events::device_removed::<C>)? };
        // SAFETY: The identifier is bound to the domain's device. Completion handlers of what this
        // module posts expect the endpoint, as does `qp_event`; it drains the queues before it
        // ends.
        let queues =
            unsafe { Queues::new(self.id(), pd, want, owner, events::qp_event::<C>, port)? };
        let depths = *queues.depths();
        // The place is free: `opening` stays set from here on.
        self.open.populate(Open {
            notifier,
            queues,
            registers_to_read: device.registers_to_read,
        });
        Ok(depths)
    }

    /// The protection domain, once open.
    #[inline]
    pub(crate) fn pd(&self) -> Option<&Arc<Pd>> {
        self.open.as_ref().map(|o| o.queues.pd())
    }

    /// Whether `pd` is this endpoint's own. Memory that is mapped for another may be another
    /// device's.
    #[inline]
    pub(in crate::verbs) fn owns(&self, pd: &Arc<Pd>) -> bool {
        self.pd().is_some_and(|own| Arc::ptr_eq(own, pd))
    }

    /// Keeps `what` until the queues are drained and gone: work requests may refer to it.
    pub(in crate::verbs) fn keep(&self, what: impl HeldUntilDrained) -> Result {
        // The list may be waited for by whoever frees memory.
        let _noio = NoIo::begin();
        let what: KBox<dyn HeldUntilDrained> = KBox::new(what, GFP_KERNEL)?;
        Ok(self.kept.lock().push(what, GFP_KERNEL)?)
    }

    /// Posts Receives; buffers that were not accepted come back with the error.
    ///
    /// # Errors
    ///
    /// `EINVAL` if not open or about to end, or if a buffer is for another endpoint; or what the
    /// device reports.
    #[inline]
    pub(crate) fn post_recv(
        &self,
        batch: RecvBatch<C::RecvData>,
    ) -> Result<(), (Error, RecvBatch<C::RecvData>)> {
        match self.posting() {
            // SAFETY: The queue pair is this endpoint's, which drains it before it ends.
            Some(open) => unsafe { batch.post::<C>(open.queues.qp(), open.queues.pd()) },
            None => Err((EINVAL, batch)),
        }
    }

    /// Whether the end has begun: nothing is reported to the context any more.
    pub(in crate::verbs) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// What is open, unless it is being drained: then nothing new may follow the drain's markers.
    #[inline]
    fn posting(&self) -> Option<&Open> {
        self.open.as_ref().filter(|_| !self.closing.load(Relaxed))
    }

    /// The queue pair, once open, for the parts of this room that post to it.
    #[inline]
    pub(in crate::verbs) fn qp(&self) -> Option<NonNull<bindings::ib_qp>> {
        self.open.as_ref().and_then(|o| NonNull::new(o.queues.qp()))
    }

    /// Whether memory that an RDMA Read goes to has to be registered.
    #[inline]
    pub(in crate::verbs) fn registers_to_read(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.registers_to_read)
    }

    /// Whether the core has made regions for transfers on this queue pair.
    pub(in crate::verbs) fn has_rw_mrs(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|o| o.queues.depths().rdma_ctxs > 0)
    }

    /// Posts a chain of work requests to the Send Queue.
    ///
    /// # Errors
    ///
    /// The device's, and what it has not taken.
    ///
    /// # Safety
    ///
    /// The chain is well formed and stays in place until it has completed, as does all that it
    /// refers to; each `wr_cqe` is null or has a `done` that expects this endpoint in `cq_context`.
    #[inline]
    pub(in crate::verbs) unsafe fn post_send_raw(
        &self,
        first: *const bindings::ib_send_wr,
    ) -> Result<(), (Error, BadWr)> {
        let Some(open) = self.posting() else {
            return Err((EINVAL, BadWr::First));
        };
        let mut bad = ptr::null();
        // SAFETY: By this function's contract.
        match unsafe { bindings::rpcrdma_post_send(open.queues.qp(), first, &mut bad) } {
            0 => Ok(()),
            ret => Err((Error::from_errno(ret), BadWr::of(first, bad))),
        }
    }

    /// The name of the device, once open.
    pub(crate) fn device_name(&self) -> Option<DeviceName> {
        self.pd().map(|pd| pd.device_ref().device_name())
    }

    /// What names a Receive in traces, by its own number.
    pub(crate) fn recv_cid(&self, id: i32) -> Cid {
        let queue = self.recv_cq_id();
        Cid { queue, id }
    }

    /// What names other work in traces, by its own number.
    pub(crate) fn send_cid(&self, id: i32) -> Cid {
        let queue = self.send_cq_id();
        Cid { queue, id }
    }

    /// What names the receive completion queue in traces; 0 before `open`.
    pub(crate) fn recv_cq_id(&self) -> u32 {
        self.open.as_ref().map_or(0, |o| o.queues.recv_cq_id())
    }

    /// What names the send completion queue in traces; 0 before `open`.
    pub(crate) fn send_cq_id(&self) -> u32 {
        self.open.as_ref().map_or(0, |o| o.queues.send_cq_id())
    }
}

impl<C: EndpointOps> Deref for EndpointBox<C> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        // SAFETY: Valid, by the type's invariants.
        unsafe { self.0.as_ref() }
    }
}

impl<C: EndpointOps> Drop for EndpointBox<C> {
    fn drop(&mut self) {
        // Handlers hold shared references until the last step; so does this.
        let this: &Endpoint<C> = self;
        let id = this.id();
        // SAFETY: The identifier is valid. Not called from a handler of it, by the contract of
        // `EndpointOps`, so the mutex is free or will be; `cm_handler` looks at `closing` under it.
        unsafe {
            bindings::rdma_lock_handler(id);
            this.closing.store(true, Relaxed);
            bindings::rdma_unlock_handler(id);
        }
        this.disconnect();
        if let Some(open) = this.open.as_ref() {
            open.notifier.end();
            // SAFETY: The owner is here, the identifier and the notice are silent; only handlers of
            // completions could post, and `closing` ends that.
            unsafe { open.queues.drain() };
            C::drained(&Drained(this));
            // SAFETY: Drained, and bound to this identifier, which is valid.
            unsafe { bindings::rdma_destroy_qp(id) };
            for what in this.kept.lock().iter() {
                what.queues_ended();
            }
        }
        // SAFETY: Valid until now; its queue pair is gone.
        unsafe { bindings::rdma_destroy_id(id) };
        // SAFETY: From `KBox`; nobody else refers to the endpoint any more.
        drop(unsafe { KBox::from_raw(self.0.as_ptr()) });
    }
}

/// Proof that nothing is posted on an endpoint any more, and nothing will be.
pub(crate) struct Drained<'a, C: EndpointOps>(&'a Endpoint<C>);

impl<C: EndpointOps> Deref for Drained<'_, C> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        self.0
    }
}
