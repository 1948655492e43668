// SPDX-License-Identifier: GPL-2.0

//! The client's transport: `struct rpc_xprt`, what belongs to it, and who may touch what.
//!
//! SUNRPC serialises the sending side of a transport by the *send lock* (`XPRT_LOCKED`): marshalling,
//! posting, connecting and closing. It is held where C calls `send_request`, `close`, the connect
//! worker and `destroy`, and it is the right to the [`Transport::Sender`].
//!
//! The [`Transport::Connection`] may be looked at with the send lock or with `link`'s mutex, and
//! changed only with both: whoever must fence memory outside of the send lock (an RPC that is given
//! up) finds the connection in place, or gone for good.
//!
//! Lock order: the send lock, then `link`, then SUNRPC's `queue_lock` or `transport_lock`. What a connection
//! locks for itself (`Endpoint::exposing`) comes after the send lock, and after `link`.

use super::addr::AddressStrings;
use super::credits::Credits;
use super::reverse::ReversePool;
use super::slot::Call;
use super::slot::FreeSlots;
use super::slot::Slot;
use crate::admin::trace::trace;
use crate::bindings;
use crate::bindings::addr::Net;
use crate::bindings::addr::SockAddr;
use crate::bindings::parked::Parked;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::ptr::NonNull;
use kernel::new_mutex;
use kernel::prelude::*;
use kernel::seq_file::SeqFile;
use kernel::sync::barrier::smp_mb;
use kernel::sync::Arc;
use kernel::sync::Mutex;
use kernel::sync::Refcount;
use kernel::types::Opaque;

/// Why a Call was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// There is no connection any more; it is closed, and SUNRPC makes another.
    NotConnected,
    /// The peer has to answer other Calls first.
    NoCredit,
    /// Something is used up that will come back: try again when told of space.
    Again,
    /// There is no memory: try again in a while.
    NoBuffers,
    /// The Call does not fit the transport. The RPC fails.
    TooBig,
    /// The Call cannot be conveyed. The RPC fails.
    Io,
}

impl SendError {
    /// As SUNRPC knows it.
    pub(crate) fn to_errno(self) -> c_int {
        let errno = match self {
            Self::NotConnected => bindings::ENOTCONN,
            Self::NoCredit => bindings::EBADSLT,
            Self::Again => bindings::EAGAIN,
            Self::NoBuffers => bindings::ENOBUFS,
            Self::TooBig => bindings::EMSGSIZE,
            Self::Io => bindings::EIO,
        };
        -errno.cast_signed()
    }
}

/// Why there is no connection. SUNRPC tells the waiting tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The attempt failed; another may succeed.
    NotConnected,
    /// The peer does not answer in time.
    TimedOut,
    /// There is no way to the peer.
    Unreachable,
    /// The peer does not want it.
    Refused,
    /// No RDMA device leads to the peer, or something unforeseen.
    Protocol,
    /// The device went away.
    NoDevice,
    /// The device lacks what this transport needs.
    Unsupported,
    /// There is no memory; another attempt may find some.
    NoMemory,
}

impl ConnectError {
    pub(super) fn to_errno(self) -> c_int {
        let errno = match self {
            // E3: a shortage of memory ends no RPC, it is tried again.
            Self::NotConnected | Self::NoMemory | Self::NoDevice => bindings::ENOTCONN,
            Self::TimedOut => bindings::ETIMEDOUT,
            Self::Unreachable => bindings::ENETUNREACH,
            Self::Refused => bindings::ECONNREFUSED,
            Self::Protocol => bindings::EPROTO,
            Self::Unsupported => bindings::EINVAL,
        };
        -errno.cast_signed()
    }
}

impl From<Error> for ConnectError {
    /// What the connection manager and the device refuse at once. Lack of a route ends RPCs that look
    /// for a server (SOFTCONN), as those of `mount`, and all RPCs of a container without a network
    /// (`fatal_neterrors`); what is unknown here ends the former, and others are tried again.
    fn from(error: Error) -> Self {
        match error.to_errno().unsigned_abs() {
            bindings::ENOMEM => Self::NoMemory,
            bindings::ENODEV => Self::NoDevice,
            bindings::ENETUNREACH | bindings::ENETDOWN => Self::Unreachable,
            _ => Self::Protocol,
        }
    }
}

/// What a connecting transport does; SUNRPC's side of it is in this room.
pub(crate) trait Transport: Sized + Send + Sync + 'static {
    /// A connection, complete with whatever the device can reach. Dropping it returns when nothing of
    /// it can be reached any more.
    type Connection: Send + Sync;
    /// What only the send lock's holder uses.
    type Sender: Send;
    /// What a Call exposes until it is answered or given up.
    type Exchange: Send;
    /// Keeps a received message in place while it is read.
    type Reply: Parked;
    /// Proof that nothing of a Call is exposed any more.
    type Fence;

    /// The name of the transport in `/proc` and in mount options; its netids.
    const NETIDS: [&'static CStr; 2];
    /// Octets that a READ or WRITE can carry.
    const MAX_PAYLOAD: usize;

    /// How many RPCs a new transport lets be outstanding.
    fn slots() -> u32;

    /// How many reverse Calls this transport lets be outstanding.
    fn reverse_slots(&self) -> u32;

    /// A new transport, not connected.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(
        xprt: XprtHandle<Self>,
        credits: Arc<Credits<XprtHandle<Self>>>,
        reverse: Arc<ReversePool<Self>>,
    ) -> Result<Self>;

    /// Connects. Runs in the connect worker.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    fn connect(&self) -> Result<(Self::Connection, Self::Sender), ConnectError>;

    /// Begins to end a connection: what waits for it, in [`Transport::fence`] say, must not wait long
    /// after this.
    fn hang_up(connection: &Self::Connection);

    /// Ends the connection as if the network had.
    fn inject_disconnect(connection: &Self::Connection) {
        Self::hang_up(connection);
    }

    /// Sends a Call. `Call::commit` has been called if this returns `Ok`.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. The Call has not been sent, except for [`SendError::NotConnected`].
    fn send(
        &self,
        connection: &Self::Connection,
        sender: &mut Self::Sender,
        call: &Call<'_, Self>,
    ) -> Result<(), SendError>;

    /// Sends the Reply to a reverse Call.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    fn send_reverse(
        &self,
        connection: &Self::Connection,
        sender: &mut Self::Sender,
        reply: &super::reverse::ReverseReply<'_, Self>,
    ) -> Result<(), SendError>;

    /// Takes back what an RPC exposed that SUNRPC has given up. Returns when the peer can no longer
    /// reach it. May sleep, not for long.
    fn fence(&self, connection: &Self::Connection, exchange: Self::Exchange) -> Self::Fence;

    /// Takes back a buffer whose message has been read.
    fn recycle(&self, reply: Self::Reply);

    /// Notes that buffers had to be allocated for an RPC.
    fn buffers_grown(&self, octets: usize);

    /// Octets that a reverse Call or its Reply may have.
    fn reverse_payload(&self) -> usize;

    /// This transport's part of the line in `mountstats`.
    fn print_stats(&self, seq: &SeqFile);
}

/// `struct rpc_xprt` with what belongs to it; C allocates it and counts references to it.
///
/// # Invariants
///
/// `live` is initialised from `setup` until `destroy`. The memory is freed when `destroy` has run and
/// no handle is left.
#[repr(C)]
pub(super) struct Xprt<T: Transport> {
    raw: Opaque<bindings::rpc_xprt>,
    handles: Refcount,
    pub(super) strings: UnsafeCell<AddressStrings>,
    pub(super) timeout: Opaque<bindings::rpc_timeout>,
    live: UnsafeCell<MaybeUninit<Live<T>>>,
}

/// The part that ends in `destroy`. Fields are dropped in this order.
#[pin_data]
pub(super) struct Live<T: Transport> {
    #[pin]
    link: Mutex<()>,
    connection: UnsafeCell<Option<T::Connection>>,
    sender: UnsafeCell<Option<T::Sender>>,
    #[pin]
    pub(super) connect_worker: Opaque<bindings::delayed_work>,
    pub(super) transport: T,
    pub(super) credits: Arc<Credits<XprtHandle<T>>>,
    pub(super) reverse: Arc<ReversePool<T>>,
    #[pin]
    pub(super) free: FreeSlots,
    slots: KVec<KBox<Slot<T>>>,
}

impl<T: Transport> Live<T> {
    /// `max` slots, all free.
    pub(super) fn new(
        xprt: XprtHandle<T>,
        slots: u32,
        worker: unsafe extern "C" fn(*mut bindings::work_struct),
    ) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let reverse = ReversePool::new()?;
            let credits = Credits::new(xprt.clone(), slots)?;
            let transport = T::new(xprt, credits.clone(), reverse.clone())?;
            let mut all = KVec::with_capacity(slots as usize, GFP_KERNEL)?;
            for _ in 0..slots {
                all.push(Slot::new()?, GFP_KERNEL)?;
            }
            Ok(try_pin_init!(Self {
                link <- new_mutex!((), "Live::link"),
                connection: UnsafeCell::new(None),
                sender: UnsafeCell::new(None),
                connect_worker <- Opaque::ffi_init(|slot| {
                    // SAFETY: `slot` is writable and pinned; it is cancelled before it ends.
                    unsafe { bindings::rpcrdma_init_delayed_work(slot, Some(worker)) };
                }),
                transport,
                credits,
                reverse,
                free <- FreeSlots::new(),
                slots: all,
            }? Error)
            .pin_chain(|this| {
                for slot in this.slots.iter() {
                    // SAFETY: Fresh slots, which live as long as `this`.
                    unsafe { this.free.put(slot) };
                }
                Ok(())
            }))
        })
    }

    /// Looks at the connection outside of the send lock; it stays during `f`.
    pub(super) fn with_link<R>(&self, f: impl FnOnce(Option<&T::Connection>) -> R) -> R {
        let _link = self.link.lock();
        // SAFETY: Only changed with the mutex held.
        f(unsafe { (*self.connection.get()).as_ref() })
    }

    /// The connection and what sends on it.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock for as long as it uses the result, of which there is one.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the send lock has one holder")]
    pub(super) unsafe fn sending(&self) -> Option<(&T::Connection, &mut T::Sender)> {
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
    pub(super) unsafe fn connected(&self, (connection, sender): (T::Connection, T::Sender)) {
        let _link = self.link.lock();
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
        // SAFETY: Only changed by the send lock's holder.
        let Some(connection) = (unsafe { (*self.connection.get()).as_ref() }) else {
            return;
        };
        // SAFETY: The transport is alive.
        trace!(xprtrdma_disconnect(unsafe { peer_of(raw) }, 0, 0));
        // Whoever has the mutex may be waiting for an answer from the device.
        T::hang_up(connection);
        {
            let _link = self.link.lock();
            // Under the mutex: who then finds no connection knows that nothing is exposed.
            // SAFETY: By this function's contract, and with the mutex.
            drop(unsafe { (*self.connection.get()).take() });
        }
        // SAFETY: By this function's contract.
        drop(unsafe { (*self.sender.get()).take() });
        for slot in self.slots.iter() {
            // What was exposed on that connection is not any more. SUNRPC sends the Call again.
            if let Some(exchange) = slot.claim() {
                drop(exchange);
                slot.settle();
            }
        }
        // SAFETY: The transport is alive. Credits are valid for one connection.
        unsafe {
            bindings::spin_lock(&raw mut (*raw).transport_lock);
            (*raw).cong = 0;
            self.credits.clear();
            for slot in self.slots.iter() {
                slot.forget_credit();
            }
            bindings::spin_unlock(&raw mut (*raw).transport_lock);
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
    pub(super) unsafe fn live(&self) -> &Live<T> {
        // SAFETY: By this function's contract and the type's invariants.
        unsafe { (*self.live.get()).assume_init_ref() }
    }

    /// The transport whose connect worker runs.
    ///
    /// # Safety
    ///
    /// `work` is in the `connect_worker` of a transport that is not destroyed while the result is used.
    pub(super) unsafe fn of_connect_worker<'a>(
        work: *mut bindings::work_struct,
    ) -> (&'a Live<T>, *mut bindings::rpc_xprt) {
        // SAFETY: By this function's contract.
        unsafe {
            let delayed = kernel::container_of!(work, bindings::delayed_work, work);
            let live = kernel::container_of!(Opaque::cast_from(delayed), Live<T>, connect_worker);
            let this =
                kernel::container_of!(live.cast::<UnsafeCell<MaybeUninit<Live<T>>>>(), Self, live);
            (&*live, this.cast_mut().cast())
        }
    }

    /// Prepares what `xprt_alloc` returned; on failure, nothing is left but that.
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
            (&raw mut (*this).handles).write(Refcount::new(1));
            let raw = this.cast::<bindings::rpc_xprt>();
            let handle = XprtHandle::first(raw);
            let slots = (*raw).max_reqs;
            let live = (&raw mut (*this).live).cast::<Live<T>>();
            // The memory does not move until it is freed.
            Live::new(handle, slots, worker).__pinned_init(live)
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
            ptr::drop_in_place((&raw mut (*this).live).cast::<Live<T>>());
            put_handle::<T>(this.cast());
        }
    }
}

/// A counted reference to the memory of an `rpc_xprt`, for who outlives the calls of SUNRPC: the
/// handlers of a connection, and work that was queued.
///
/// What it offers is good at any time, also after SUNRPC has destroyed the transport.
///
/// # Invariants
///
/// Points to the `rpc_xprt` in an `Xprt<T>`, one of whose `handles` this is.
pub(crate) struct XprtHandle<T: Transport>(
    NonNull<bindings::rpc_xprt>,
    core::marker::PhantomData<T>,
);

// SAFETY: What a handle offers may be called from any thread.
unsafe impl<T: Transport> Send for XprtHandle<T> {}
// SAFETY: As above.
unsafe impl<T: Transport> Sync for XprtHandle<T> {}

impl<T: Transport> Clone for XprtHandle<T> {
    fn clone(&self) -> Self {
        // SAFETY: The memory is there while a handle is.
        unsafe { (*self.0.as_ptr().cast::<Xprt<T>>()).handles.inc() };
        // INVARIANT: Counted above.
        Self(self.0, core::marker::PhantomData)
    }
}

impl<T: Transport> Drop for XprtHandle<T> {
    fn drop(&mut self) {
        // SAFETY: This is one of the handles.
        unsafe { put_handle::<T>(self.0.as_ptr()) };
    }
}

/// # Safety
///
/// The caller gives up one of the transport's handles, or `destroy`'s share.
unsafe fn put_handle<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    if unsafe { (*raw.cast::<Xprt<T>>()).handles.dec_and_test() } {
        // SAFETY: Nobody refers to the memory any more. `setup` took the module's reference.
        unsafe {
            AddressStrings::free_address(raw);
            bindings::xprt_free(raw);
            bindings::module_put(crate::THIS_MODULE.as_ptr());
        }
    }
}

/// The address that a transport connects to.
///
/// # Safety
///
/// The transport's memory is there.
pub(super) unsafe fn peer_of(raw: *mut bindings::rpc_xprt) -> Option<SockAddr> {
    // SAFETY: By this function's contract; there is room for any address. An administrator may put
    // another address there, through sysfs, and SUNRPC another port, with the send lock or not. Whoever
    // has the send lock sees a whole address; others, as traces, may see a part of each. The copy stays
    // within the member in any case.
    unsafe { SockAddr::from_raw((&raw const (*raw).addr).cast(), size_of::<SockAddr>()) }
}

impl<T: Transport> XprtHandle<T> {
    /// # Safety
    ///
    /// `raw` is in an `Xprt<T>` whose `handles` is not zero.
    unsafe fn first(raw: *mut bindings::rpc_xprt) -> Self {
        // SAFETY: By this function's contract.
        unsafe { (*raw.cast::<Xprt<T>>()).handles.inc() };
        // INVARIANT: Counted above.
        // SAFETY: Not null, by this function's contract.
        Self(
            unsafe { NonNull::new_unchecked(raw) },
            core::marker::PhantomData,
        )
    }

    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::rpc_xprt {
        self.0.as_ptr()
    }

    /// The namespace that connections are made in.
    pub(crate) fn net(&self) -> Option<Net> {
        // SAFETY: The transport's memory holds the namespace.
        unsafe { Net::from_raw((*self.raw()).xprt_net) }
    }

    /// The address to connect to: a whole one for the send lock's holder.
    pub(crate) fn peer(&self) -> Option<SockAddr> {
        // SAFETY: The memory is there while a handle is.
        unsafe { peer_of(self.raw()) }
    }

    /// How many RPCs may be outstanding at most.
    pub(crate) fn slots(&self) -> u32 {
        // SAFETY: Constant after setup.
        unsafe { (*self.raw()).max_reqs }
    }

    /// Has SUNRPC close the connection and make another when it needs one.
    pub(crate) fn force_disconnect(&self) {
        // SAFETY: The memory is there; good in any context.
        unsafe { bindings::xprt_force_disconnect(self.raw()) };
    }

    /// Has the send lock's holder, which must be the caller's task, wait for [`Self::space`]. Look
    /// again for space after this, and tell of it: it may have come in between.
    #[cold]
    pub(crate) fn wait_for_space(&self) {
        // SAFETY: The memory is there.
        unsafe {
            bindings::xprt_wait_for_buffer_space(self.raw());
            // Pairs with the barrier in `space`.
            bindings::rpcrdma_smp_mb_after_atomic();
        }
    }

    /// Tells who waits for it that there is space again.
    #[inline]
    pub(crate) fn space(&self) {
        // The space is there before SUNRPC is asked whether anybody waits, which it looks at without a
        // lock: who has begun to wait and is not seen here sees the space. Pairs with the barrier in
        // `wait_for_space`.
        smp_mb();
        // SAFETY: The memory is there; good in any context.
        unsafe { bindings::xprt_write_space(self.raw()) };
    }

    /// Lets `credits` Calls be outstanding.
    #[inline]
    pub(crate) fn set_window(&self, credits: u32) {
        let raw = self.raw();
        // SAFETY: The memory is there; the window is `transport_lock`'s.
        unsafe {
            bindings::spin_lock(&raw mut (*raw).transport_lock);
            (*raw).cwnd = usize::try_from(credits).unwrap_or(usize::MAX) << bindings::RPC_CWNDSHIFT;
            bindings::spin_unlock(&raw mut (*raw).transport_lock);
        }
    }

    /// The connection is good for something: if it is lost, the next attempt need not wait.
    #[inline]
    pub(crate) fn useful(&self) {
        let raw = self.raw();
        // SAFETY: The memory is there. SUNRPC reads and writes this word without a lock; one access
        // each way cannot tear.
        unsafe {
            let timeout = &raw mut (*raw).reestablish_timeout;
            if timeout.read_volatile() != 0 {
                timeout.write_volatile(0);
            }
        }
    }

    /// Whether SUNRPC has heard of a callback service to take reverse Calls.
    #[inline]
    pub(crate) fn has_callback_service(&self) -> bool {
        // SAFETY: The memory is there; a hint, which `xprt_enqueue_bc_request` checks under its lock.
        unsafe { !(&raw const (*self.raw()).bc_serv).read_volatile().is_null() }
    }
}
