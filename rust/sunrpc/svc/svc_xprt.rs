// SPDX-License-Identifier: GPL-2.0

//! The server's `struct svc_xprt` with its private part.
//!
//! Both are one allocation. SUNRPC counts references to the transport (`xpt_ref`), and calls
//! `xpo_free` with the last one, which drops the private part. The memory stays as long as there is
//! an [`XprtHandle`].
//!
//! A transport belongs to the code that creates it, as a [`NewXprt`] and then an [`SvcXprt`], until
//! SUNRPC takes it over.
//!
//! C: svc_rdma.h, struct svcxprt_rdma
//! C: svc_rdma_transport.c, svc_rdma_create_xprt(), svc_rdma_free()

use core::{
    cell::UnsafeCell,
    mem,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    prelude::*,
    sync::aref::AlwaysRefCounted, //
};

use crate::{
    bindings,
    lib::{
        delayed_work::RawDelayedWork,
        sockaddr::{
            Net,
            SockAddr, //
        }, //
    },
    sunrpc::{
        c_ref::{
            read_once,
            CRef, //
        },
        class::StaticClass, //
    }, //
};

use super::{
    handle::{
        Header,
        XprtHandle,
        XprtMemory, //
    },
    rqst_pages,
    xprt_ref::SvcXprtRef, //
};

/// The class. Its transports keep the module, and so the class.
pub(super) static CLASS: StaticClass<bindings::svc_xprt_class> = StaticClass::new();

/// A handle of `xprt`, if that is a connection of the class. It is then a connection of the
/// listener type that is registered.
pub(super) fn connection(xprt: SvcXprtRef<'_>) -> Option<XprtHandle> {
    let is_listener = xprt.flags().test(1 << bindings::XPT_LISTENER);
    if !ptr::eq(xprt.class(), CLASS.get()) || is_listener {
        return None;
    }
    // SAFETY: All transports of the class come from `NewXprt::new`, and start with a header. The
    // memory of this one stays, so `handles` is not zero.
    Some(unsafe { XprtHandle::new(NonNull::new_unchecked(xprt.raw().cast())) })
}

/// `struct svc_xprt` with its private part.
///
/// # Invariants
///
/// - I1: `data` is `Some` from [`NewXprt::install`] until `xpo_free`, and is not replaced.
#[pin_data]
#[repr(C)]
struct Xprt<T> {
    #[pin]
    header: Header,
    data: UnsafeCell<Option<T>>,
    /// Calls [`free`]. See [`free_later`].
    #[pin]
    free_work: RawDelayedWork,
}

/// Addresses and name of a new transport.
struct Names<'a> {
    local: &'a mut [u8; SOCKADDR_STORAGE],
    local_len: &'a mut usize,
    remote: &'a mut [u8; SOCKADDR_STORAGE],
    remote_len: &'a mut usize,
    remote_text: &'a mut [c_char],
}

/// The size of a `sockaddr_storage`.
const SOCKADDR_STORAGE: usize = size_of::<bindings::__kernel_sockaddr_storage>();

/// A transport without private part, which SUNRPC does not know yet.
///
/// # Invariants
///
/// - I1: Points to an `Xprt` from `KBox`, whose C structure is initialised.
/// - I2: Owns the one reference that `xpt_ref` counts, and with it that of `handles` that
///   `xpo_free` puts.
pub(crate) struct NewXprt<T>(NonNull<Xprt<T>>);

// SAFETY: A transport may be created in one thread and dropped in another.
unsafe impl<T: Send> Send for NewXprt<T> {}

impl<T: Send + Sync + 'static> NewXprt<T> {
    /// Creates a transport of the class.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The class is registered. `serv` is valid as long as the transport, and `net` is valid during
    /// this call. `ops` are for transports of `T`.
    pub(super) unsafe fn new(
        ops: &'static bindings::svc_xprt_ops,
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
    ) -> Result<Self> {
        let xprt = KBox::pin_init(
            // INVARIANT: I1 of `Xprt`: nothing is installed.
            pin_init!(Xprt::<T> {
                header <- Header::new(),
                data: UnsafeCell::new(None),
                free_work <- RawDelayedWork::new(run_free::<T>, kernel::static_lock_class!()),
            }),
            GFP_KERNEL,
        )?;
        let raw = xprt.header.raw();
        // SAFETY: The structure is new, and no other thread accesses it. Class, service and
        // namespace are valid by this function's contract; the transport takes a reference to the
        // namespace.
        unsafe {
            bindings::svc_xprt_init(net, CLASS.get(), raw, serv);
            (*raw).xpt_ops = ops;
        }
        // INVARIANT: I1: initialised above. I2: `svc_xprt_init()` counts one reference, and
        // `Header::new` one.
        // SAFETY: The transport is not moved: from here on it is used by reference.
        let this = Self(NonNull::from(KBox::leak(unsafe {
            Pin::into_inner_unchecked(xprt)
        })));
        // RFC 7530 Section 3.1 requires a transport that controls congestion.
        this.xprt().flags().set::<{ bindings::XPT_CONG_CTRL }>();
        Ok(this)
    }

    /// A handle of the transport.
    pub(crate) fn handle(&self) -> XprtHandle {
        // SAFETY: By I1 the header is at the start of a `KBox` allocation, and by I2 `handles` is
        // not zero.
        unsafe { XprtHandle::new(self.0.cast()) }
    }

    /// The network namespace.
    pub(crate) fn net(&self) -> Option<Net> {
        // SAFETY: By I2 there is a reference to the transport, which has one to the namespace.
        unsafe { Net::from_raw(self.xprt().net()) }
    }

    /// The service.
    fn server(&self) -> CRef<'_, bindings::svc_serv> {
        // SAFETY: By I2 there is a reference to the transport, as long as which SUNRPC keeps the
        // service.
        unsafe { CRef::new(self.xprt().server()) }
    }

    /// How many pages the longest message of the service needs.
    pub(crate) fn max_pages(&self) -> usize {
        // SAFETY: A `CRef` keeps the service. The function reads a word that never changes.
        unsafe { bindings::rpcrdma_svc_serv_maxpages(self.server().raw()) }
    }

    /// How many pages a Call to the service may have.
    pub(crate) fn max_call_pages(&self) -> usize {
        rqst_pages::max_call_pages(self.max_pages())
    }

    /// The largest payload of a READ or WRITE of the service, in bytes.
    pub(crate) fn max_payload(&self) -> u32 {
        read_once!(self.server(), sv_max_payload)
    }

    /// Sets the local address.
    pub(crate) fn set_local(&mut self, addr: &SockAddr) {
        let names = self.names();
        *names.local = *addr.bytes();
        *names.local_len = addr.len();
    }

    /// Sets the address of the peer, with port 0.
    ///
    /// The port changes with each connection, and the peer cannot choose it. Without the port, the
    /// duplicate reply cache recognises a peer that has reconnected.
    pub(crate) fn set_remote(&mut self, addr: &SockAddr) {
        let names = self.names();
        let mut without_port = *addr;
        without_port.set_port(0);
        *names.remote = *without_port.bytes();
        *names.remote_len = addr.len();
        let text = names.remote_text;
        // SAFETY: `snprintf()` writes no more than the array, and `%pISc` reads an address.
        unsafe {
            bindings::snprintf(
                text.as_mut_ptr(),
                text.len() - 1,
                c"%pISc".to_bytes_with_nul().as_ptr(),
                addr.as_ptr(),
            )
        };
    }

    /// Marks the peer as this host (`XPT_LOCAL`): nfsd must not throttle its writes like a remote
    /// client's, because only these writes clean the client's dirty pages.
    pub(crate) fn set_peer_is_local(&mut self) {
        self.xprt().flags().set::<{ bindings::XPT_LOCAL }>();
    }

    /// Marks the transport as a listener.
    pub(super) fn set_listener(&mut self) {
        self.xprt().flags().set::<{ bindings::XPT_LISTENER }>();
        // With the NUL: `svc_xprt_init()` has written "uninitialized".
        let text = self.names().remote_text.iter_mut();
        for (to, from) in text.zip(c"listener".to_bytes_with_nul()) {
            *to = *from;
        }
    }

    /// Addresses and name of the transport.
    fn names(&mut self) -> Names<'_> {
        let raw = self.raw();
        // SAFETY: By I1 the memory is there. Before SUNRPC takes the transport over, no other
        // thread accesses these fields, and `self` is borrowed mutably. A `sockaddr_storage` has as
        // many bytes as a `SockAddr`, and any bytes are a valid one.
        unsafe {
            Names {
                local: &mut *(&raw mut (*raw).xpt_local).cast(),
                local_len: &mut (*raw).xpt_locallen,
                remote: &mut *(&raw mut (*raw).xpt_remote).cast(),
                remote_len: &mut (*raw).xpt_remotelen,
                remote_text: &mut (*raw).xpt_remotebuf,
            }
        }
    }

    /// Adds the private part.
    pub(crate) fn install(self, data: T) -> SvcXprt<T> {
        // SAFETY: By I1 the memory is there. SUNRPC does not know the transport, and handles do not
        // access `data`.
        // INVARIANT: I1 of `Xprt`: it was `None`.
        unsafe { *(*self.0.as_ptr()).data.get() = Some(data) };
        // INVARIANT: I1 of `SvcXprt`: installed above.
        SvcXprt(self)
    }
}

impl<T> NewXprt<T> {
    /// The transport.
    #[inline]
    fn xprt(&self) -> SvcXprtRef<'_> {
        // SAFETY: By I1 the memory is there, and by I2 it stays as long as this value.
        unsafe { SvcXprtRef::new((*self.0.as_ptr()).header.raw()) }
    }

    /// The C structure.
    #[inline]
    fn raw(&self) -> *mut bindings::svc_xprt {
        self.xprt().raw()
    }
}

impl<T> Drop for NewXprt<T> {
    fn drop(&mut self) {
        let xprt = self.xprt();
        // Handles may stay, and must find the transport closed.
        xprt.flags().set::<{ bindings::XPT_DEAD }>();
        // SAFETY: By I1 the transport is initialised. The free of a transport puts a module
        // reference, which SUNRPC takes when it takes a transport over. It has not, so it is taken
        // here. By I2 there is a reference to put.
        unsafe {
            bindings::__module_get((*xprt.class()).xcl_owner);
            bindings::svc_xprt_put(xprt.raw());
        }
    }
}

/// A complete transport that SUNRPC has not taken over yet.
///
/// # Invariants
///
/// - I1: The private part is installed.
pub(crate) struct SvcXprt<T>(NewXprt<T>);

impl<T> SvcXprt<T> {
    /// Leaves the transport to SUNRPC.
    pub(super) fn into_raw(self) -> *mut bindings::svc_xprt {
        mem::ManuallyDrop::new(self).0.raw()
    }
}

impl<T: Sync> Deref for SvcXprt<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By I1 of `NewXprt` it is an `Xprt<T>`. By I1 the private part is installed.
        unsafe { data(self.0.raw()) }
    }
}

/// The private part of a transport that SUNRPC has.
///
/// # Safety
///
/// `xprt` is in an `Xprt<T>` whose private part is installed. Within `'a` `xpo_free` is not called,
/// or waits in the drop of the private part, which has not changed it yet.
#[inline]
pub(super) unsafe fn data<'a, T: Sync>(xprt: *mut bindings::svc_xprt) -> &'a T {
    // SAFETY: By this function's contract. The C structure is at the start of an `Xprt`, and by I1
    // of `Xprt` an installed private part is `Some`.
    unsafe {
        (*(*xprt.cast::<Xprt<T>>()).data.get())
            .as_ref()
            .unwrap_unchecked()
    }
}

/// The private part of a transport, if it is installed.
///
/// # Safety
///
/// `xprt` is in an `Xprt<T>`, and `xpo_free` does not drop the private part within `'a`.
pub(super) unsafe fn installed<'a, T: Sync>(xprt: *mut bindings::svc_xprt) -> Option<&'a T> {
    // SAFETY: As in `data`.
    unsafe { (*(*xprt.cast::<Xprt<T>>()).data.get()).as_ref() }
}

/// `xpo_free`: drops the private part. Sleeps.
///
/// # Safety
///
/// SUNRPC calls this once, when the last reference to the transport of `T` is gone.
pub(super) unsafe extern "C" fn free<T>(xprt: *mut bindings::svc_xprt) {
    let whole = xprt.cast::<Xprt<T>>();
    // SAFETY: By this function's contract no other thread accesses the private part, but for the
    // handlers that its drop waits for. These only read what the drop does not change before, as
    // `Connection` demands. The memory comes from `KBox`, and the reference is that of
    // `Header::new`, which this puts once.
    unsafe {
        ptr::drop_in_place((*whole).data.get());
        XprtMemory::dec_ref(NonNull::new_unchecked(whole.cast()));
    }
}

/// Leaves [`free`] to a work item, for a caller that must not sleep as long as `free` may.
///
/// # Safety
///
/// As for [`free`].
pub(super) unsafe fn free_later<T>(xprt: *mut bindings::svc_xprt) {
    // SAFETY: By this function's contract it is an `Xprt<T>` that stays until `free` is called. Its
    // class is a static of the module. SUNRPC puts a module reference when `xpo_free` returns, so
    // one is taken here, which `run_free` puts.
    unsafe {
        bindings::__module_get((*(*xprt).xpt_class).xcl_owner);
        (*xprt.cast::<Xprt<T>>()).free_work.queue(0);
    }
}

/// The function of `free_work`.
///
/// # Safety
///
/// The workqueue calls this once, for the `free_work` of an `Xprt<T>` that [`free_later`] has left
/// to it.
unsafe extern "C" fn run_free<T>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract, and by that of `free_later`. The class is a static of
    // the module, to which `free_later` has taken a reference.
    unsafe {
        let whole = kernel::container_of!(RawDelayedWork::from_work(work), Xprt<T>, free_work);
        let xprt = (*whole).header.raw();
        let owner = (*(*xprt).xpt_class).xcl_owner;
        free::<T>(xprt);
        bindings::module_put(owner);
    }
}
