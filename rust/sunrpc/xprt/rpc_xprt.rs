// SPDX-License-Identifier: GPL-2.0

//! The client's transport: `struct rpc_xprt`, what belongs to it, and who may touch what.
//!
//! SUNRPC serialises the sending side of a transport by the *send lock* (`XPRT_LOCKED`):
//! marshalling, posting, connecting and closing. It is held where C calls `send_request`, `close`,
//! the connect worker and `destroy`, and it is the right to the [`Transport::Sender`].
//!
//! The [`Connection`] may be looked at with the send lock or with `link`'s mutex, and
//! changed only with both: whoever must fence memory outside of the send lock (an RPC that is given
//! up) finds the connection in place, or gone for good.
//!
//! Lock order: the send lock, then `link`, then SUNRPC's `queue_lock` or `transport_lock`. What a
//! connection locks for itself (`Endpoint::exposing`) comes after the send lock, and after `link`.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        Refcount, //
    }, //
};

use crate::{
    bindings,
    lib::{
        delayed_work::RawDelayedWork,
        pool::Pool, //
    },
    sunrpc::{
        credits::Credits,
        locks, //
    },
    trace::trace, //
};

use super::{
    backchannel::BackchannelPool,
    backoff::ReconnectBackoff,
    handle::{
        peer_of,
        put_handle,
        Header,
        XprtHandle, //
    },
    slot::{
        FreeSlot,
        Slot, //
    },
    transport::Transport,
    types::Connection, //
};

/// `struct rpc_xprt` with what belongs to it; C allocates it and counts references to it.
///
/// # Invariants
///
/// `live` is initialised from `setup` until `destroy`. The memory is freed when `destroy` has run
/// and no handle is left.
#[repr(C)]
pub(super) struct Xprt<T: Transport> {
    pub(super) header: Header,
    live: UnsafeCell<MaybeUninit<XprtState<T>>>,
}

/// The part that ends in `destroy`. Fields are dropped in this order: what is free links `slots`.
///
/// # Invariants
///
/// `connection` is changed only with both the send lock and `link`'s mutex, and read with either;
/// `sender` is the send lock's alone. There is a sender whenever there is a connection. All that
/// was put into `free` is in `slots`.
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
    #[pin]
    pub(super) free: Pool<FreeSlot<T>>,
    slots: KVVec<KBox<Slot<T>>>,
}

impl<T: Transport> XprtState<T> {
    /// `slots` of them, all free.
    pub(super) fn new(
        xprt: XprtHandle<T>,
        slots: u32,
        worker: unsafe extern "C" fn(*mut bindings::work_struct),
    ) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let backchannel = BackchannelPool::new(xprt.clone())?;
            let credits = Credits::new(xprt.clone(), slots)?;
            let backoff = ReconnectBackoff::new(xprt.clone());
            let transport = T::new(xprt, credits.clone(), backchannel.clone())?;
            let mut all = KVVec::with_capacity(slots as usize, GFP_KERNEL)?;
            for _ in 0..slots {
                all.push(Slot::new()?, GFP_KERNEL)?;
            }
            Ok(try_pin_init!(Self {
                link <- new_mutex!((), "Live::link"),
                connection: UnsafeCell::new(None),
                sender: UnsafeCell::new(None),
                connect_worker <- RawDelayedWork::new(worker, kernel::static_lock_class!()),
                backoff <- backoff,
                transport,
                credits,
                backchannel,
                free <- Pool::new(),
                slots: all,
            }? Error)
            .pin_chain(|this| {
                for slot in this.slots.iter() {
                    // SAFETY: Fresh slots, which live until `this` is dropped, and `free` with it.
                    this.free.put(unsafe { FreeSlot::new(slot) });
                }
                Ok(())
            }))
        })
    }

    /// Looks at the connection outside of the send lock; it stays during `f`.
    pub(super) fn with_link<R>(&self, f: impl FnOnce(Option<&Connection<T>>) -> R) -> R {
        let _link = self.link.lock();
        // SAFETY: By the type's invariants, with the mutex held.
        f(unsafe { (*self.connection.get()).as_ref() })
    }

    /// The connection and what sends on it.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock for as long as it uses the result, of which there is one.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the send lock has one holder")]
    pub(super) unsafe fn sending(&self) -> Option<(&Connection<T>, &mut T::Sender)> {
        // SAFETY: By this function's contract.
        unsafe {
            (*self.connection.get())
                .as_ref()
                .zip((*self.sender.get()).as_mut())
        }
    }

    /// Puts a new connection in place.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and there is no connection.
    pub(super) unsafe fn connected(&self, (connection, sender): (Connection<T>, T::Sender)) {
        let _link = self.link.lock();
        // INVARIANT: There is both now.
        // SAFETY: By this function's contract; the mutex excludes those who only look.
        unsafe {
            *self.connection.get() = Some(connection);
            *self.sender.get() = Some(sender);
        }
    }

    /// Ends the connection, if there is one, and returns when nothing of it is left.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and nobody uses what [`Self::sending`] returned.
    pub(super) unsafe fn disconnect(&self, raw: *mut bindings::rpc_xprt) {
        // SAFETY: By the type's invariants, with the send lock held.
        let Some(connection) = (unsafe { (*self.connection.get()).as_ref() }) else {
            return;
        };
        // SAFETY: The transport is alive.
        trace!(xprtrdma_disconnect(unsafe { peer_of(raw) }, 0, 0));
        // Whoever has the mutex may be waiting for an answer from the device.
        T::disconnect(connection);
        {
            let _link = self.link.lock();
            // Under the mutex: whoever then finds no connection knows that nothing is exposed.
            // SAFETY: By this function's contract, and with the mutex.
            drop(unsafe { (*self.connection.get()).take() });
        }
        // SAFETY: By this function's contract.
        drop(unsafe { (*self.sender.get()).take() });
        for slot in self.slots.iter() {
            // What was exposed on that connection is not any more. SUNRPC sends the Call again.
            if let Some(claim) = slot.slot_state.claim() {
                let (claimed_empty, inflight) = claim.take();
                drop(inflight);
                claimed_empty.settle();
            }
        }
        // SAFETY: The transport is alive. Credits are valid for one connection.
        unsafe {
            let _locked = locks::transport(raw);
            (*raw).cong = 0;
            self.credits.clear();
            for slot in self.slots.iter() {
                slot.forget_credit();
            }
        }
    }
}

impl<T: Transport> Xprt<T> {
    /// # Safety
    ///
    /// `raw` is what `setup::<T>` returned, or is about to return, and has not been destroyed.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::rpc_xprt) -> &'a Self {
        // SAFETY: By this function's contract; it is the first member.
        unsafe { &*raw.cast() }
    }

    /// # Safety
    ///
    /// Between `setup` and `destroy`.
    #[inline]
    pub(super) unsafe fn live(&self) -> &XprtState<T> {
        // SAFETY: By this function's contract and the type's invariants.
        unsafe { (*self.live.get()).assume_init_ref() }
    }

    /// The transport whose connect worker runs.
    ///
    /// # Safety
    ///
    /// `work` is in the `connect_worker` of a transport that is not destroyed while the result is
    /// used.
    pub(super) unsafe fn of_connect_worker<'a>(
        work: *mut bindings::work_struct,
    ) -> (&'a XprtState<T>, *mut bindings::rpc_xprt) {
        // SAFETY: By this function's contract.
        unsafe {
            let work = RawDelayedWork::from_work(work);
            let live = kernel::container_of!(work, XprtState<T>, connect_worker);
            let this = kernel::container_of!(
                live.cast::<UnsafeCell<MaybeUninit<XprtState<T>>>>(),
                Self,
                live
            );
            (&*live, this.cast_mut().cast())
        }
    }

    /// Prepares what `xprt_alloc` returned; on failure, nothing is left but that, handles, and the
    /// share in it that the caller puts with [`put_handle`].
    ///
    /// # Safety
    ///
    /// `this` is fresh from `xprt_alloc`, with room for `Self`.
    pub(super) unsafe fn init(
        this: *mut Self,
        worker: unsafe extern "C" fn(*mut bindings::work_struct),
    ) -> Result {
        // SAFETY: By this function's contract.
        unsafe {
            (&raw mut (*this).header.handles).write(Refcount::new(1));
            let raw = this.cast::<bindings::rpc_xprt>();
            let handle = XprtHandle::new(raw);
            let slots = (*raw).max_reqs;
            let live = (&raw mut (*this).live).cast::<XprtState<T>>();
            // The memory does not move until it is freed.
            XprtState::new(handle, slots, worker).__pinned_init(live)
        }
    }

    /// Ends `live`; the memory goes with the last handle.
    ///
    /// # Safety
    ///
    /// Called once, from `destroy`.
    pub(super) unsafe fn finish(this: *mut Self) {
        // SAFETY: Initialised by `init`; nobody calls into the transport any more.
        unsafe {
            ptr::drop_in_place((&raw mut (*this).live).cast::<XprtState<T>>());
            put_handle(this.cast());
        }
    }
}
