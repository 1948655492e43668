// SPDX-License-Identifier: GPL-2.0

//! Counted references to the memory of a server's transport.
//!
//! SUNRPC counts references to the transport itself (`xpt_ref`), and frees the private part with
//! the last of them. The handlers of a connection run until the drop of the private part has waited
//! for them, and use an [`XprtHandle`]. [`XprtHandle::get`] takes one of SUNRPC's references.
//!
//! In the C module, the handlers use the `svc_xprt` itself.
//!
//! C: svc_rdma_transport.c, svc_rdma_xprt_deferred_close(), svc_rdma_xprt_done()

use core::{
    mem,
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        atomic::ordering::Relaxed,
        Refcount, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    lib::{
        close_reason::Closed,
        delayed_work::RawDelayedWork,
        sync::Atomic, //
    },
    sunrpc::c_ref::read_once, //
};

use super::xprt_ref::SvcXprtRef;

/// The start of a server's transport, whatever its type.
#[pin_data]
#[repr(C)]
pub(super) struct Header {
    xprt: Opaque<bindings::svc_xprt>,
    /// The handles, and one more until `xpo_free` has run.
    handles: Refcount,
    /// Why this end has SUNRPC close the connection.
    closed: Closed,
    /// [`XprtHandle::close_by_worker`] was called.
    worker_closes: Atomic<bool>,
    #[pin]
    close_work: RawDelayedWork,
}

impl Header {
    /// A header that counts the reference that `xpo_free` puts. The C structure is not initialised.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            xprt: Opaque::uninit(),
            handles: Refcount::new(1),
            closed: Closed::new(),
            worker_closes: Atomic::new(false),
            close_work <- RawDelayedWork::new(run_close, kernel::static_lock_class!()),
        })
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_xprt {
        self.xprt.get()
    }
}

/// The memory of a server's transport, which `handles` counts references to.
///
/// # Invariants
///
/// - I1: The header is at the start of a `KBox` allocation, and `svc_xprt_init()` has initialised
///   its C structure. The memory stays while `handles` is not zero.
#[repr(transparent)]
pub(super) struct XprtMemory(Header);

// SAFETY: The reference count is atomic. Any thread may use the C structure.
unsafe impl Send for XprtMemory {}
// SAFETY: As for `Send`.
unsafe impl Sync for XprtMemory {}

// SAFETY: By I1 the memory stays while `handles` is not zero. A reference to an `XprtMemory` comes
// from an `ARef` only, or from a transport whose `handles` is not zero.
unsafe impl AlwaysRefCounted for XprtMemory {
    fn inc_ref(&self) {
        self.0.handles.inc();
    }

    unsafe fn dec_ref(memory: NonNull<Self>) {
        // SAFETY: The caller's reference keeps the memory.
        if unsafe { memory.as_ref() }.0.handles.dec_and_test() {
            // SAFETY: That was the last reference, so `xpo_free` has dropped what is behind the
            // header and has put its own. By I1 the memory comes from `KBox`, and what is left in
            // it needs no drop.
            unsafe { bindings::kfree(memory.as_ptr().cast()) };
        }
    }
}

/// A counted reference to the memory of a server's transport. Its methods may be called at any
/// time, except [`Self::enqueue`]. They have no effect once SUNRPC has freed the transport.
#[derive(Clone)]
pub(crate) struct XprtHandle(ARef<XprtMemory>);

impl XprtHandle {
    /// # Safety
    ///
    /// `header` satisfies I1 of [`XprtMemory`], and `handles` is not zero during this call.
    pub(super) unsafe fn new(header: NonNull<Header>) -> Self {
        // SAFETY: By this function's contract the header is valid, and an `XprtMemory` is
        // `repr(transparent)`.
        Self(unsafe { header.cast::<XprtMemory>().as_ref() }.into())
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(&self) -> SvcXprtRef<'_> {
        // SAFETY: By I1 of `XprtMemory` the C structure is initialised, and this handle keeps it.
        unsafe { SvcXprtRef::new(self.0 .0.raw()) }
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_xprt {
        self.xprt().raw()
    }

    /// Announces something to receive. The caller must call [`Self::enqueue`] next.
    #[inline]
    pub(crate) fn set_data(&self) {
        // A full barrier follows: SUNRPC next checks whether there is space to send. A thread that
        // has returned space then reads the flags, after a barrier that pairs with this.
        self.xprt().flags().set_mb::<{ bindings::XPT_DATA }>();
    }

    /// Announces a connection to accept. The caller must call [`Self::enqueue`] next.
    #[inline]
    pub(crate) fn set_connection(&self) {
        self.xprt().flags().set::<{ bindings::XPT_CONN }>();
    }

    /// Undoes [`Self::set_connection`], before a connection is accepted.
    #[inline]
    pub(crate) fn clear_connection(&self) {
        self.xprt().flags().clear::<{ bindings::XPT_CONN }>();
    }

    /// Tells that the connection is in use, as SUNRPC does for each Call that a thread takes.
    ///
    /// `svc_age_temp_xprts()` closes a connection that is not busy and has no other reference, if
    /// no thread has taken a Call since its last pass. No thread does while chains wait for the
    /// Send Queue, and they hold no reference. In C, a thread waits and holds one.
    pub(crate) fn clear_old(&self) {
        self.xprt().flags().clear::<{ bindings::XPT_OLD }>();
    }

    /// Wakes an nfsd thread for the transport, if there is something to do.
    ///
    /// Does nothing for a closing transport, which the closing thread has enqueued. SUNRPC puts the
    /// network namespace, which its trace events read, before it frees the private part.
    ///
    /// The caller is a handler, which the drop of the private part waits for, or has a reference to
    /// the transport: SUNRPC calls `xpo_has_wspace`, which reads the private part. See P9 in
    /// `Documentation/architecture.rst`.
    #[inline]
    pub(crate) fn enqueue(&self) {
        if !self.is_closing() {
            // SAFETY: This handle keeps the C structure. A transport without references stays busy,
            // so the function does not put it into a queue. The private part of a listener is not
            // read. All callers for a connection are methods of its endpoint's context and of the
            // timer in it, called by handlers or with a reference to the connection.
            unsafe { bindings::svc_xprt_enqueue(self.raw()) };
        }
    }

    /// Makes an nfsd thread close the transport, unless a thread already does.
    pub(crate) fn deferred_close(&self) {
        if !self.is_closing() {
            // SAFETY: This handle keeps the C structure. A transport without references stays busy,
            // so the function does not put it into a queue. It sets `XPT_CLOSE`, with which SUNRPC
            // does not call `xpo_has_wspace`. As in C, a trace event may read a network namespace
            // that is put after the check above.
            unsafe { bindings::svc_xprt_deferred_close(self.raw()) };
        }
    }

    /// Makes a worker close the transport. If a thread uses the transport, the thread closes it.
    /// Only the first call has an effect.
    ///
    /// An idle transport is closed without an nfsd thread: all threads may be frozen, or blocked by
    /// Calls of other transports.
    pub(crate) fn close_by_worker(&self) {
        let header = &self.0 .0;
        if header.worker_closes.xchg(true, Relaxed) {
            return;
        }
        // Without references the transport is being freed.
        if let Some(xprt) = self.get() {
            // `run_close` puts this reference. It keeps the transport, and with that the module.
            mem::forget(xprt);
            // SAFETY: The reference keeps the work item in place. `run_close` is called once.
            unsafe { header.close_work.queue(0) };
        }
    }

    /// Why this end has SUNRPC close the connection.
    pub(crate) fn closed(&self) -> &Closed {
        &self.0 .0.closed
    }

    /// Whether the transport is closed, or about to be.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        let closing = 1 << bindings::XPT_CLOSE | 1 << bindings::XPT_DEAD;
        self.xprt().flags().test(closing)
    }

    /// Whether an export has accepted the client (`XPT_PEER_VALID`).
    #[inline]
    pub(crate) fn is_peer_valid(&self) -> bool {
        self.xprt().flags().test(1 << bindings::XPT_PEER_VALID)
    }

    /// The number of requests that nfsd executes for the connection.
    pub(crate) fn requests(&self) -> i32 {
        read_once!(self.xprt(), xpt_nr_rqsts.counter)
    }

    /// Takes a reference to the transport itself; `None` if SUNRPC has freed the transport.
    pub(super) fn get(&self) -> Option<XprtRef<'_>> {
        // SAFETY: This handle keeps the count, which never leaves zero.
        let got = unsafe { bindings::rpcrdma_svc_xprt_get_unless_zero(self.raw()) };
        // INVARIANT: I1: counted above. Without a reference no value is made: its drop would put
        // one.
        got.then(|| XprtRef(self))
    }
}

/// A counted reference to a transport. Dropping the last one frees the transport, which sleeps.
///
/// # Invariants
///
/// - I1: `xpt_ref` counts this reference.
pub(super) struct XprtRef<'a>(&'a XprtHandle);

impl Deref for XprtRef<'_> {
    type Target = XprtHandle;

    #[inline]
    fn deref(&self) -> &XprtHandle {
        self.0
    }
}

impl Drop for XprtRef<'_> {
    fn drop(&mut self) {
        // SAFETY: By I1 one reference belongs to this value.
        unsafe { bindings::svc_xprt_put(self.raw()) };
    }
}

/// The function of `close_work`.
///
/// # Safety
///
/// The workqueue calls this for the `close_work` of a transport, to which
/// [`XprtHandle::close_by_worker`] has left a reference.
unsafe extern "C" fn run_close(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract. The memory may be gone, and the module without
    // references, when the put returns.
    unsafe {
        let header = kernel::container_of!(RawDelayedWork::from_work(work), Header, close_work);
        let xprt = (*header).raw();
        bindings::svc_xprt_close(xprt);
        bindings::svc_xprt_put(xprt);
    }
}
