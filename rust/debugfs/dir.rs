// SPDX-License-Identifier: GPL-2.0

//! The directories of the two ends.

use core::ptr;

use kernel::sync::atomic::ordering::Relaxed;

use crate::{
    bindings,
    lib::sync::Atomic, //
};

/// The transports of the client, by their `rpc_xprt.id`.
pub(crate) static CLIENT: Dir = Dir::new();

/// The connections of the server, by number.
pub(crate) static SERVER: Dir = Dir::new();

/// A directory, while there is a [`Tree`](super::Tree).
pub(crate) struct Dir(Atomic<*mut bindings::dentry>);

impl Dir {
    const fn new() -> Self {
        Self(Atomic::new(ptr::null_mut()))
    }

    /// The directory, or an error; NULL if there is no [`Tree`](super::Tree).
    pub(super) fn dentry(&self) -> *mut bindings::dentry {
        self.0.load(Relaxed)
    }

    /// Sets what [`Self::dentry`] returns.
    ///
    /// # Safety
    ///
    /// `dentry` is NULL, an error, or a directory, which stays until this is called again.
    pub(super) unsafe fn set(&self, dentry: *mut bindings::dentry) {
        self.0.store(dentry, Relaxed);
    }
}
