// SPDX-License-Identifier: GPL-2.0

//! The server's `struct svc_rqst`: what nfsd threads receive into and reply from. See
//! [`rqst_pages`](super::rqst_pages) for its pages.
//!
//! C header: [`include/linux/sunrpc/svc.h`](srctree/include/linux/sunrpc/svc.h)

use crate::{
    bindings,
    sunrpc::c_ref::{
        read_once,
        CRef,
        Flags, //
    }, //
};

use super::xprt_ref::SvcXprtRef;

/// A request that belongs to this thread.
///
/// # Invariants
///
/// - I1: No other thread accesses the request within `'a`, but for its atomic flags. The request
///   has a reference to its transport.
/// - I2: SUNRPC has set up the arrays of pages, see [`rqst_pages`](super::rqst_pages).
pub(super) struct SvcRqst<'a>(pub(super) CRef<'a, bindings::svc_rqst>);

impl SvcRqst<'_> {
    /// # Safety
    ///
    /// I1 and I2 hold for the lifetime.
    #[inline]
    pub(super) unsafe fn new(raw: *mut bindings::svc_rqst) -> Self {
        // SAFETY: By this function's contract.
        // INVARIANT: I1 and I2: by this function's contract.
        Self(unsafe { CRef::new(raw) })
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_rqst {
        self.0.raw()
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(&self) -> SvcXprtRef<'_> {
        let xprt = read_once!(self.0, rq_xprt);
        // SAFETY: By I1 the request has a reference to the transport.
        unsafe { SvcXprtRef::new(xprt) }
    }

    /// The `RQ_*` flags.
    #[inline]
    pub(super) fn flags(&self) -> Flags<'_> {
        // SAFETY: By I1 the word is there. SUNRPC and this module change it by atomic operations.
        unsafe { Flags::new(&raw mut (*self.raw()).rq_flags) }
    }

    /// The pseudoflavor of the Call's credential.
    #[inline]
    pub(super) fn flavor(&self) -> u32 {
        read_once!(self.0, rq_cred.cr_flavor)
    }

    /// Whether the Call was deferred, and received again.
    #[inline]
    pub(super) fn was_deferred(&self) -> bool {
        !read_once!(self.0, rq_deferred).is_null()
    }

    /// The message of the Reply.
    #[inline]
    pub(super) fn reply(&self) -> &bindings::xdr_buf {
        // SAFETY: By I1 the request is this thread's, which does not change the message meanwhile.
        unsafe { &(*self.raw()).rq_res }
    }
}
