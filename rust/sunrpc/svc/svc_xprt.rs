// SPDX-License-Identifier: GPL-2.0

//! `struct svc_xprt`: a server transport, in SUNRPC's hands.
//!
//! The C structure and ours share an allocation. SUNRPC counts references to the transport; with
//! the last one it calls `xpo_free`, which drops our part. The memory stays as long as there is a
//! [`SvcHandle`].
//!
//! A transport belongs to its maker ([`SvcXprt`]) until SUNRPC takes it over.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::{
        self,
        MaybeUninit, //
    },
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::prelude::*;

use crate::{
    bindings,
    lib::sockaddr::{
        Net,
        SockAddr, //
    },
    sunrpc::class::StaticClass, //
};

use super::handle::{
    put_memory,
    Header,
    SvcHandle, //
};

/// The class; its transports refer to it, and keep the module.
pub(super) static CLASS: StaticClass<bindings::svc_xprt_class> = StaticClass::new();

/// Whether `xprt` is a connection of the class, and so one of the registered listener's type.
///
/// # Safety
///
/// `xprt` is null, or valid.
pub(super) unsafe fn is_connection(xprt: *mut bindings::svc_xprt) -> bool {
    // SAFETY: By this function's contract. The class of a transport is constant, and so is this
    // flag.
    !xprt.is_null()
        && unsafe {
            ptr::eq((*xprt).xpt_class, CLASS.get())
                && (&raw const (*xprt).xpt_flags).read_volatile() & (1 << bindings::XPT_LISTENER)
                    == 0
        }
}

/// A whole transport.
///
/// # Invariants
///
/// If `installed` is set, `data` is initialised.
#[repr(C)]
struct Whole<T> {
    header: Header,
    /// Whether `data` is there.
    installed: bool,
    data: UnsafeCell<MaybeUninit<T>>,
}

/// A transport without our part, and unknown to SUNRPC.
///
/// # Invariants
///
/// `xprt` points to a `Whole` from `KBox`, whose C structure is initialised. The one reference that
/// this structure counts is this value's, and so is one of the header's count of its memory.
pub(crate) struct NewXprt<T> {
    xprt: NonNull<Whole<T>>,
    _owns: PhantomData<T>,
}

// SAFETY: A transport may be made on one thread and dropped on another.
unsafe impl<T: Send> Send for NewXprt<T> {}

impl<T: Send + Sync + 'static> NewXprt<T> {
    /// # Safety
    ///
    /// The class is registered. `serv` and `net` are valid, and outlive the transport or are kept
    /// by it. `ops` expects a transport of this type.
    pub(super) unsafe fn new(
        ops: &'static bindings::svc_xprt_ops,
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
    ) -> Result<Self> {
        let whole = KBox::new(
            Whole::<T> {
                header: Header::new(),
                installed: false,
                data: UnsafeCell::new(MaybeUninit::uninit()),
            },
            GFP_KERNEL,
        )?;
        let whole = NonNull::from(KBox::leak(whole));
        // SAFETY: The structure is ours; the rest by this function's contract.
        unsafe {
            let xprt = (*whole.as_ptr()).header.raw();
            bindings::svc_xprt_init(net, CLASS.get(), xprt, serv);
            (*xprt).xpt_ops = ops;
            // RFC 7530 Section 3.1: the transport controls congestion.
            bindings::set_bit(bindings::XPT_CONG_CTRL as usize, &raw mut (*xprt).xpt_flags);
        }
        // INVARIANT: `svc_xprt_init` counts one reference, and the header one for the transport.
        Ok(Self {
            xprt: whole,
            _owns: PhantomData,
        })
    }

    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_xprt {
        // SAFETY: Valid until dropped.
        unsafe { (*self.xprt.as_ptr()).header.raw() }
    }

    /// A handle of the transport.
    pub(crate) fn handle(&self) -> SvcHandle {
        // SAFETY: The header is at the start of the whole, which is valid until this is dropped.
        unsafe { SvcHandle::new(self.xprt.cast()) }
    }

    /// The namespace.
    pub(crate) fn net(&self) -> Option<Net> {
        // SAFETY: The transport has a reference to it until it is dropped.
        unsafe { Net::from_raw((*self.raw()).xpt_net) }
    }

    /// Pages that the longest message of the service needs.
    pub(crate) fn max_pages(&self) -> usize {
        // SAFETY: The service outlives its transports, of which this is one until it is dropped.
        unsafe { bindings::rpcrdma_svc_serv_maxpages((*self.raw()).xpt_server) }
    }

    /// Bytes of the longest payload that the service reads or writes at a time.
    pub(crate) fn max_payload(&self) -> u32 {
        // SAFETY: The service outlives its transports, of which this is one until it is dropped.
        unsafe { (*(*self.raw()).xpt_server).sv_max_payload }
    }

    /// Sets the address of this end.
    pub(crate) fn set_local(&mut self, addr: &SockAddr) {
        let xprt = self.raw();
        // SAFETY: SUNRPC does not know the transport yet; the target is a whole `sockaddr_storage`.
        unsafe {
            (&raw mut (*xprt).xpt_local)
                .cast::<u8>()
                .copy_from_nonoverlapping(addr.as_ptr().cast(), addr.len());
            (*xprt).xpt_locallen = addr.len();
        }
    }

    /// Sets the address of the peer.
    ///
    /// Its port is not the peer's choice and changes with each connection. SUNRPC is told none, so
    /// that the cache of replies recognises a peer that has reconnected.
    pub(crate) fn set_remote(&mut self, addr: &SockAddr) {
        let xprt = self.raw();
        let mut fixed = *addr;
        fixed.set_port(0);
        // SAFETY: SUNRPC does not know the transport yet; the target is a whole `sockaddr_storage`,
        // and the text is cut to what the array has room for.
        unsafe {
            (&raw mut (*xprt).xpt_remote)
                .cast::<u8>()
                .copy_from_nonoverlapping(fixed.as_ptr().cast(), fixed.len());
            (*xprt).xpt_remotelen = fixed.len();
            bindings::snprintf(
                (&raw mut (*xprt).xpt_remotebuf).cast(),
                size_of_val(&(*xprt).xpt_remotebuf) - 1,
                c"%pISc".as_char_ptr(),
                addr.as_ptr(),
            );
        }
    }

    /// Marks the transport as one that listens.
    pub(super) fn set_listener(&mut self) {
        let xprt = self.raw();
        let name = c"listener".to_bytes_with_nul();
        // SAFETY: SUNRPC does not know the transport yet; the array is longer than the name.
        unsafe {
            bindings::set_bit(bindings::XPT_LISTENER as usize, &raw mut (*xprt).xpt_flags);
            (&raw mut (*xprt).xpt_remotebuf)
                .cast::<u8>()
                .copy_from_nonoverlapping(name.as_ptr(), name.len());
        }
    }

    /// Adds our part.
    pub(crate) fn install(self, data: T) -> SvcXprt<T> {
        let whole = self.xprt.as_ptr();
        // SAFETY: Nobody else looks at these members before SUNRPC has the transport.
        // INVARIANT: `data` is there before `installed` says so.
        unsafe {
            (*whole).data.get().cast::<T>().write(data);
            (*whole).installed = true;
        }
        SvcXprt(self)
    }
}

impl<T> Drop for NewXprt<T> {
    fn drop(&mut self) {
        // Handles may outlive it, and find it closed.
        // SAFETY: Valid, and unknown to SUNRPC. The end of a transport puts a reference to the
        // module that SUNRPC takes when it takes a transport over, so one is needed here.
        unsafe {
            let xprt = (*self.xprt.as_ptr()).header.raw();
            bindings::set_bit(bindings::XPT_DEAD as usize, &raw mut (*xprt).xpt_flags);
            bindings::__module_get((*(*xprt).xpt_class).xcl_owner);
            bindings::svc_xprt_put(xprt);
        }
    }
}

/// A complete transport that SUNRPC has not taken over yet.
///
/// # Invariants
///
/// `installed` is set.
pub(crate) struct SvcXprt<T>(NewXprt<T>);

impl<T: Send + Sync + 'static> SvcXprt<T> {
    /// Leaves the transport to SUNRPC.
    pub(super) fn into_raw(self) -> *mut bindings::svc_xprt {
        let raw = self.0.raw();
        mem::forget(self);
        raw
    }
}

impl<T> Deref for SvcXprt<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: Installed, by the type's invariants.
        unsafe { &*(*self.0.xprt.as_ptr()).data.get().cast::<T>() }
    }
}

impl<T> DerefMut for SvcXprt<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: Installed, by the type's invariants; SUNRPC does not have the transport yet, so
        // that there is no other reference.
        unsafe { &mut *(*self.0.xprt.as_ptr()).data.get().cast::<T>() }
    }
}

/// Our part of a transport in SUNRPC's hands.
///
/// # Safety
///
/// `xprt` comes from [`SvcXprt::into_raw`] for the same type, and is not freed within `'a`.
#[inline]
pub(super) unsafe fn data<'a, T: Sync>(xprt: *mut bindings::svc_xprt) -> &'a T {
    // SAFETY: The C structure is at the start of the whole; installed, by this function's contract.
    unsafe { &*(*xprt.cast::<Whole<T>>()).data.get().cast::<T>() }
}

/// `xpo_free`: the last reference is gone. Sleeps.
///
/// # Safety
///
/// Called by SUNRPC, once, for a transport with our part `T`.
pub(super) unsafe extern "C" fn free<T>(xprt: *mut bindings::svc_xprt) {
    let whole = xprt.cast::<Whole<T>>();
    // SAFETY: By this function's contract; handlers use handles, and what they share with our part
    // is there until it has waited for them. The whole is from `KBox`, and the transport's own
    // reference to it is given up once, here.
    unsafe {
        if (*whole).installed {
            ptr::drop_in_place((*whole).data.get().cast::<T>());
        }
        put_memory(NonNull::new_unchecked(whole.cast()));
    }
}
