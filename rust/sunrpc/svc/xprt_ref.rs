// SPDX-License-Identifier: GPL-2.0

//! An `svc_xprt` whose memory is there, with the operations that any thread may call on it.
//!
//! C header: [`include/linux/sunrpc/svc_xprt.h`](srctree/include/linux/sunrpc/svc_xprt.h)

use crate::{
    bindings,
    lib::sync::Atomic,
    sunrpc::c_ref::{
        read_once,
        CRef,
        Flags, //
    }, //
};

/// A transport that `svc_xprt_init()` has initialised.
pub(super) type SvcXprtRef<'a> = CRef<'a, bindings::svc_xprt>;

impl<'a> SvcXprtRef<'a> {
    /// The `XPT_*` flags.
    #[inline]
    pub(super) fn flags(self) -> Flags<'a> {
        // SAFETY: By I1 of `CRef` the word is there. SUNRPC and this module change it by atomic
        // operations.
        unsafe { Flags::new(&raw mut (*self.raw()).xpt_flags) }
    }

    /// Whether the peer is this host.
    #[inline]
    pub(super) fn peer_is_local(self) -> bool {
        self.flags().test(1 << bindings::XPT_LOCAL)
    }

    /// The pointer to the backchannel transport.
    #[inline]
    pub(super) fn bc_xprt(self) -> &'a Atomic<*mut bindings::rpc_xprt> {
        // SAFETY: By I1 of `CRef` the word is there. All threads access it atomically, but for
        // SUNRPC, which reads it when the connection is closed.
        unsafe { Atomic::from_ptr(&raw mut (*self.raw()).xpt_bc_xprt) }
    }

    /// The service, which SUNRPC keeps as long as there is a reference to the transport.
    pub(super) fn server(self) -> *mut bindings::svc_serv {
        read_once!(self, xpt_server)
    }

    /// The network namespace, to which the transport has a reference as long as there is one to the
    /// transport.
    pub(super) fn net(self) -> *mut bindings::net {
        read_once!(self, xpt_net)
    }

    /// The class.
    pub(super) fn class(self) -> *mut bindings::svc_xprt_class {
        read_once!(self, xpt_class)
    }
}
