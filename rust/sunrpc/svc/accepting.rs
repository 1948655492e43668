// SPDX-License-Identifier: GPL-2.0

//! Making the transport of a connection that comes in on a listener.

use core::marker::PhantomData;

use kernel::prelude::*;

use crate::bindings;

use super::{
    svc_xprt::NewXprt,
    types::Types, //
};

/// A listener that SUNRPC wants a connection from.
///
/// # Invariants
///
/// `xprt` is a listener that stays, with its service and its namespace, for `'a`, and `ops` expect
/// transports of `C`.
pub(crate) struct Accepting<'a, C: Types> {
    xprt: *mut bindings::svc_xprt,
    ops: &'static bindings::svc_xprt_ops,
    _listener: PhantomData<&'a C>,
}

impl<C: Types> Accepting<'_, C> {
    /// # Safety
    ///
    /// The type's invariants hold for the lifetime.
    pub(super) unsafe fn new(
        xprt: *mut bindings::svc_xprt,
        ops: &'static bindings::svc_xprt_ops,
    ) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            xprt,
            ops,
            _listener: PhantomData,
        }
    }

    /// A transport for a connection that came in on this listener.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new_connection(&self) -> Result<NewXprt<C>> {
        let xprt = self.xprt;
        // SAFETY: By the type's invariants. SUNRPC keeps the service as long as its transports, and
        // a transport its namespace.
        unsafe { NewXprt::new(self.ops, (*xprt).xpt_server, (*xprt).xpt_net) }
    }
}
