// SPDX-License-Identifier: GPL-2.0

//! The client's `struct rpc_xprt` with its private part, and the right to access that.
//!
//! SUNRPC serialises marshalling, posting, connecting and closing by the *send lock*
//! (`XPRT_LOCKED`). It is held where C calls `send_request` or `close`, and in the connect worker.
//! A [`SendLock`] is the proof, and gives access to the [`Types::Sender`].
//!
//! A thread may read the [`Connection`] with the send lock or with the mutex `link`, and
//! change it only with both. A thread that fences memory without the send lock, for an RPC that
//! was given up, thus finds the connection in place or gone for good.
//!
//! Lock order: the send lock, `link`, SUNRPC's `queue_lock`, SUNRPC's `transport_lock`. A lock of
//! the connection itself (`Endpoint::exposing`) comes after the send lock and `link`.
//!
//! C: xprt_rdma.h, struct rpcrdma_xprt, struct rpcrdma_buffer
//! C: verbs.c, rpcrdma_xprt_disconnect(), rpcrdma_req_reset(), rpcrdma_reqs_reset()
//! C: verbs.c, rpcrdma_buffer_create(), rpcrdma_buffer_destroy()
//!
//! [`Types::Sender`]: super::types::Types::Sender

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        aref::AlwaysRefCounted,
        Arc,
        Mutex, //
    }, //
};

use crate::{
    bindings,
    compat::{
        pin_init_scope,
        write_pin_init, //
    },
    debugfs::Removable,
    lib::{
        close_reason::CloseReason,
        delayed_work::RawDelayedWork,
        pool::Pool,
        sync::SetOnce, //
    },
    sunrpc::{
        credits::Credits,
        rpc_rqst::RqstRef,
        time::jiffies,
        xprt_base::WithBase,
        xprt_ref::XprtRef, //
    },
    trace::trace, //
};

use super::{
    backchannel::BackchannelPool,
    backoff::ReconnectBackoff,
    connect_error::PeerState,
    handle::{
        Header,
        XprtHandle, //
    },
    slot::{
        FreeSlot,
        OwnedSlot,
        Slot, //
    },
    transport::Transport,
    types::Connection, //
};

/// `struct rpc_xprt` with the private part. C allocates it and counts references to it.
///
/// # Invariants
///
/// - I1: `state` is initialised between the return of [`Self::init`] and [`Self::destroy`].
#[repr(C)]
pub(super) struct Xprt<T: Transport> {
    header: Header,
    state: UnsafeCell<MaybeUninit<XprtState<T>>>,
}

// SAFETY: An `Xprt` starts with a `Header`, which starts with an `XprtBase`. Both are `repr(C)`.
unsafe impl<T: Transport> WithBase for Xprt<T> {}

impl<T: Transport> Xprt<T> {
    /// Initialises a transport. On failure the caller puts the reference that the header counts.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; or the error of [`Transport::new`].
    ///
    /// # Safety
    ///
    /// `this` is a transport on which `NewXprt::init` was called, and no other thread accesses it.
    /// `connect_worker` is its connect worker.
    pub(super) unsafe fn init(
        this: *mut Self,
        connect_worker: unsafe extern "C" fn(*mut bindings::work_struct),
    ) -> Result {
        let raw = this.cast::<bindings::rpc_xprt>();
        // SAFETY: The header is part of the transport, which is the caller's alone. It counts one
        // reference when the handle is made.
        let handle = unsafe {
            Header::init(&raw mut (*this).header);
            XprtHandle::new(raw)
        };
        // SAFETY: The memory is the caller's alone, and is neither moved nor freed before `destroy`
        // drops the state. The reference is not used after this function.
        let state: &'static mut MaybeUninit<_> = unsafe { &mut *(*this).state.get() };
        // INVARIANT: I1: initialised by this.
        write_pin_init(state, XprtState::new(handle, connect_worker))
    }

    /// Drops the private part, and puts the reference that the header counts.
    ///
    /// # Safety
    ///
    /// Called once, by `destroy`: no other thread uses the transport, except for handles.
    pub(super) unsafe fn destroy(raw: *mut bindings::rpc_xprt) {
        // SAFETY: By I1 `state` is initialised. By this function's contract it is not used any
        // more, and handles do not access it. `init` counted the reference, and this is called
        // once.
        unsafe {
            let this = raw.cast::<Self>();
            ptr::drop_in_place((&raw mut (*this).state).cast::<XprtState<T>>());
            Header::dec_ref(NonNull::new_unchecked(this.cast()));
        }
    }
}

/// The private part of a transport, from `setup` to `destroy`.
///
/// # Invariants
///
/// - I1: `connection` is changed only with both the send lock and `link` held, and read with
///   either.
/// - I2: Only the holder of the send lock accesses `sender`.
/// - I3: If there is a connection, there is a sender.
/// - I4: Each slot in `free` is one of `slots`.
#[pin_data]
pub(super) struct XprtState<T: Transport> {
    #[pin]
    link: Mutex<()>,
    connection: UnsafeCell<Option<Connection<T>>>,
    sender: UnsafeCell<Option<T::Sender>>,
    #[pin]
    pub(super) connect_worker: RawDelayedWork,
    #[pin]
    pub(super) backoff: ReconnectBackoff<T>,
    pub(super) transport: T,
    pub(super) credits: Arc<Credits<XprtHandle<T>>>,
    pub(super) backchannel: Arc<BackchannelPool<T>>,
    // `free` is dropped before `slots`, whose members it links.
    #[pin]
    pub(super) free: Pool<FreeSlot<T>>,
    slots: KVVec<KBox<Slot<T>>>,
    xprt: XprtHandle<T>,
    /// Removed before anything else is dropped.
    file: SetOnce<KBox<dyn Removable>>,
}

impl<T: Transport> XprtState<T> {
    /// The private part of a transport, with all slots free.
    fn new(
        xprt: XprtHandle<T>,
        connect_worker: unsafe extern "C" fn(*mut bindings::work_struct),
    ) -> impl PinInit<Self, Error> {
        pin_init_scope(move || {
            let slots = xprt.slots();
            let backchannel = BackchannelPool::new(xprt.clone())?;
            let credits = Credits::new(xprt.clone(), slots)?;
            let backoff = ReconnectBackoff::new(xprt.clone());
            let transport = T::new(xprt.clone(), credits.clone(), backchannel.clone())?;
            let mut all = KVVec::with_capacity(slots as usize, GFP_KERNEL)?;
            for _ in 0..slots {
                all.push(Slot::new()?, GFP_KERNEL)?;
            }
            // INVARIANT: I1 to I4: there is no connection, no sender, and no free slot yet.
            Ok(try_pin_init!(Self {
                link <- new_mutex!((), "XprtState::link"),
                connection: UnsafeCell::new(None),
                sender: UnsafeCell::new(None),
                connect_worker <- RawDelayedWork::new(connect_worker, kernel::static_lock_class!()),
                backoff <- backoff,
                transport,
                credits,
                backchannel,
                free <- Pool::new(),
                slots: all,
                xprt,
                file: SetOnce::new(),
            }? Error)
            .pin_chain(|this| {
                for slot in this.slots.iter() {
                    // SAFETY: A new slot is idle, has no Reply, and nothing else has a right to it.
                    // It is freed after `free` is.
                    // INVARIANT: I4: it is one of `slots`.
                    this.free.put(unsafe { FreeSlot::new(slot) });
                }
                Ok(())
            }))
        })
    }

    /// The private part of a transport.
    ///
    /// # Safety
    ///
    /// `raw` is in an `Xprt<T>` whose `setup` has returned, and `destroy` does not return within
    /// `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::rpc_xprt) -> &'a Self {
        // SAFETY: By this function's contract and I1 of `Xprt` the state is initialised. The C
        // structure is at the start of an `Xprt`.
        unsafe { (*(*raw.cast::<Xprt<T>>()).state.get()).assume_init_ref() }
    }

    /// The private part of the transport whose connect worker runs.
    ///
    /// # Safety
    ///
    /// `work` is in the `connect_worker` of a transport of `T`. `destroy` does not return within
    /// `'a`.
    pub(super) unsafe fn of_connect_worker<'a>(work: *mut bindings::work_struct) -> &'a Self {
        // SAFETY: By this function's contract `work` is in the state of an `Xprt<T>`.
        unsafe { &*kernel::container_of!(RawDelayedWork::from_work(work), Self, connect_worker) }
    }

    /// The private part of the transport of a request, and the slot of the request.
    ///
    /// # Safety
    ///
    /// `rqst` comes from `alloc_slot` or from `BackchannelPool::enqueue` of a transport of `T`.
    #[inline]
    pub(super) unsafe fn of_rqst(rqst: RqstRef<'_>) -> (&Self, &Slot<T>) {
        // SAFETY: By this function's contract request and transport are those of `T`. The request
        // keeps the transport.
        unsafe { (Self::from_raw(rqst.xprt().raw()), Slot::of(rqst)) }
    }

    /// The private part of the transport of a request, and the slot of the request, for the task
    /// that has the slot.
    ///
    /// # Safety
    ///
    /// `rqst` comes from `alloc_slot` of a transport of `T`. It satisfies the invariants of
    /// [`OwnedSlot`].
    #[inline]
    pub(super) unsafe fn own(rqst: RqstRef<'_>) -> (&Self, OwnedSlot<'_, T>) {
        // SAFETY: By this function's contract.
        unsafe {
            let (state, slot) = Self::of_rqst(rqst);
            (state, OwnedSlot::new(slot))
        }
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(&self) -> XprtRef<'_> {
        self.xprt.xprt()
    }

    /// All slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot<T>> {
        self.slots.iter().map(|slot| &**slot)
    }

    /// Stores the file that shows this state.
    pub(super) fn set_file(&self, file: KBox<dyn Removable>) {
        self.file.populate(file);
    }

    /// Removes the file, and waits until no task reads it. Sleeps.
    pub(super) fn remove_file(&self) {
        if let Some(file) = self.file.as_ref() {
            file.remove();
        }
    }

    /// Calls `f` with the connection, which stays meanwhile. Does not take the send lock.
    pub(super) fn with_link<R>(&self, f: impl FnOnce(Option<&Connection<T>>) -> R) -> R {
        let _link = self.link.lock();
        // SAFETY: By I1 the connection may be read, since the mutex is held.
        f(unsafe { (*self.connection.get()).as_ref() })
    }

    /// [`Self::with_link`] for a reader that must not wait for the device: calls `f` without the
    /// connection while another thread has the mutex.
    pub(super) fn try_with_link<R>(&self, f: impl FnOnce(Option<&Connection<T>>) -> R) -> R {
        let Some(_link) = self.link.try_lock() else {
            return f(None);
        };
        // SAFETY: By I1 the connection may be read, since the mutex is held.
        f(unsafe { (*self.connection.get()).as_ref() })
    }
}

/// The send lock of a transport, held.
///
/// # Invariants
///
/// - I1: The send lock of the transport of `state` is held on behalf of this value's owner, and
///   there is no other `SendLock` of it.
pub(super) struct SendLock<'a, T: Transport> {
    state: &'a XprtState<T>,
}

impl<'a, T: Transport> SendLock<'a, T> {
    /// # Safety
    ///
    /// I1 holds for `'a`.
    #[inline]
    pub(super) unsafe fn assume(state: &'a XprtState<T>) -> Self {
        // INVARIANT: I1: by this function's contract.
        Self { state }
    }

    /// The private part of the transport.
    #[inline]
    pub(super) fn state(&self) -> &'a XprtState<T> {
        self.state
    }

    /// The connection, and the state of its sending side.
    #[inline]
    pub(super) fn sender(&mut self) -> Option<(&Connection<T>, &mut T::Sender)> {
        let (connection, sender) = self.sides();
        connection.as_ref().zip(sender.as_mut())
    }

    /// The connection, and the state of its sending side.
    #[inline]
    fn sides(&mut self) -> (&Option<Connection<T>>, &mut Option<T::Sender>) {
        // SAFETY: By I1 and I2 of `XprtState` the holder of the send lock may read the connection,
        // and has sole access to the sender. `self`, which by I1 is the only lock, is borrowed
        // mutably.
        unsafe { (&*self.state.connection.get(), &mut *self.state.sender.get()) }
    }

    /// Replaces the connection. Drops the old connection with the mutex held: a thread that finds
    /// no connection can rely on nothing being exposed.
    fn replace(&mut self, connection: Option<Connection<T>>) {
        let _link = self.state.link.lock();
        // SAFETY: By I1 of `XprtState` the connection may be changed, since the send lock and
        // `link` are held. `self` is borrowed mutably.
        unsafe { *self.state.connection.get() = connection };
    }

    /// Stores a new connection. There must be none.
    pub(super) fn store(&mut self, (connection, sender): (Connection<T>, T::Sender)) {
        // In this order, for I3 of `XprtState`.
        *self.sides().1 = Some(sender);
        self.replace(Some(connection));
    }

    /// Ends the connection, if there is one. On return the device can reach no memory through it,
    /// and each outstanding Call may be sent again.
    pub(super) fn disconnect(&mut self) {
        let state = self.state;
        // A reason that was noted too late for one connection is not that of the next.
        let reason = take_reason(state.xprt());
        let Some((connection, _)) = self.sender() else {
            return;
        };
        trace!(xprtrdma_disconnect(state.xprt().peer(), 0, 0));
        // Ends the wait of a thread that waits for the device with `link` held.
        T::disconnect(connection, reason);
        self.replace(None);
        *self.sides().1 = None;
        for slot in state.slots.iter() {
            // The peer can no longer reach what the Call exposed. SUNRPC sends the Call again.
            if let Some(claim) = slot.slot_state.claim() {
                let (claimed_empty, inflight) = claim.take();
                drop(inflight);
                claimed_empty.give_up();
            }
        }
        // Credits are valid for one connection.
        let locked = state.xprt().lock();
        locked.reset_credits_in_use();
        state.credits.clear();
        for slot in state.slots.iter() {
            // SAFETY: `transport_lock` is held.
            unsafe { slot.forget_credit() };
        }
    }

    /// Changes the connect cookie: SUNRPC sends a Call again if its cookie is an old one.
    pub(super) fn change_cookie(&mut self) {
        let raw = self.state.xprt().raw();
        // SAFETY: The state keeps the memory. By I1 there is no other writer; SUNRPC reads the word
        // without a lock.
        unsafe { (*raw).connect_cookie = (*raw).connect_cookie.wrapping_add(1) };
    }

    /// Counts a connection, for `mountstats`.
    pub(super) fn count_connect(&mut self) {
        // SAFETY: The state keeps the memory. By I1 there is no other writer; SUNRPC reads the
        // words without a lock.
        unsafe {
            let stat = &raw mut (*self.state.xprt().raw()).stat;
            let elapsed = jiffies().wrapping_sub((*stat).connect_start);
            (*stat).connect_count = (*stat).connect_count.wrapping_add(1);
            (*stat).connect_time = (*stat).connect_time.wrapping_add(elapsed);
        }
    }

    /// Begins the reconnect delay after an attempt, which has shown the state of the `peer`. A
    /// message from the peer resets it.
    pub(super) fn begin_backoff(&mut self, peer: PeerState) {
        // SAFETY: By I1 the send lock is held.
        unsafe { self.state.backoff.begin(peer) };
    }

    /// Ends the connection and tells SUNRPC, which wakes the waiting tasks.
    pub(super) fn close(&mut self) {
        self.disconnect();
        self.change_cookie();
        self.state.xprt().disconnect_done();
    }
}

/// Why SUNRPC closes a connection, if that can be told. Takes the reason that this end has noted.
fn take_reason(xprt: XprtRef<'_>) -> CloseReason {
    // SAFETY: Only transports of this module have such a connection.
    let noted = unsafe { Header::closed(xprt) }.take();
    match noted {
        Some(reason) => reason,
        None if xprt.is_idle() => CloseReason::Idle,
        None => CloseReason::Sunrpc,
    }
}
