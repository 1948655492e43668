// SPDX-License-Identifier: GPL-2.0

//! Creates the transport of a connection that arrived at a listener.

use core::marker::PhantomData;

use kernel::prelude::*;

use crate::bindings;

use super::{
    svc_xprt::NewXprt,
    types::Types,
    xprt_ref::SvcXprtRef, //
};

/// A listener on which SUNRPC calls `xpo_accept`.
///
/// # Invariants
///
/// - I1: `xprt` is a listener. It stays for `'a`, and so do its service and its namespace.
/// - I2: `ops` are for transports of `C`.
pub(crate) struct Accepting<'a, C: Types> {
    xprt: SvcXprtRef<'a>,
    ops: &'static bindings::svc_xprt_ops,
    _connections: PhantomData<C>,
}

impl<'a, C: Types> Accepting<'a, C> {
    /// # Safety
    ///
    /// I1 and I2 hold.
    pub(super) unsafe fn new(xprt: SvcXprtRef<'a>, ops: &'static bindings::svc_xprt_ops) -> Self {
        // INVARIANT: I1 and I2: by this function's contract.
        Self {
            xprt,
            ops,
            _connections: PhantomData,
        }
    }

    /// A transport for the connection.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new_connection(&self) -> Result<NewXprt<C>> {
        // SAFETY: By I1 service and namespace are valid. SUNRPC keeps a service as long as its
        // transports, and a transport its namespace. By I2 `ops` are for transports of `C`.
        unsafe { NewXprt::new(self.ops, self.xprt.server(), self.xprt.net()) }
    }
}
