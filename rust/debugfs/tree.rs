// SPDX-License-Identifier: GPL-2.0

//! The directories.

use core::ptr;

use kernel::{
    prelude::*,
    sync::atomic::ordering::{
        Full,
        Relaxed, //
    }, //
};

use crate::{
    bindings,
    lib::sync::Atomic, //
};

use super::ended;

/// The transports of the client, by their `rpc_xprt.id`.
pub(crate) static CLIENT: Dir = Dir::new();

/// The connections of the server, by number.
pub(crate) static SERVER: Dir = Dir::new();

/// There is or was a [`Tree`].
static MADE: Atomic<bool> = Atomic::new(false);

/// A directory, while there is a [`Tree`].
pub(crate) struct Dir(Atomic<*mut bindings::dentry>);

impl Dir {
    const fn new() -> Self {
        Self(Atomic::new(ptr::null_mut()))
    }

    /// NULL, an error, or the directory.
    pub(super) fn dentry(&self) -> *mut bindings::dentry {
        self.0.load(Relaxed)
    }
}

/// The whole tree. Dropping it removes the tree.
///
/// # Invariants
///
/// - I1: `root` is what `debugfs_create_dir()` returned, and is not removed.
pub(crate) struct Tree {
    root: *mut bindings::dentry,
}

// SAFETY: Any thread may remove a directory.
unsafe impl Send for Tree {}
// SAFETY: A shared reference has no methods.
unsafe impl Sync for Tree {}

impl Tree {
    /// Creates the tree, before there are any files.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there was one already.
    pub(crate) fn new() -> Result<Self> {
        if MADE.xchg(true, Full) {
            return Err(EBUSY);
        }
        // SAFETY: `MADE` was not set, so this runs once. debugfs accepts an error as a parent, and
        // returns one for its children.
        unsafe {
            ended::init();
            let root = create_dir(c"rpcrdma", ptr::null_mut());
            CLIENT.0.store(create_dir(c"client", root), Relaxed);
            SERVER.0.store(create_dir(c"server", root), Relaxed);
            // INVARIANT: I1: just created.
            Ok(Self { root })
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for dir in [&CLIENT, &SERVER] {
            dir.0.store(ptr::null_mut(), Relaxed);
        }
        // SAFETY: By I1. All that is in the directory goes with it.
        unsafe { bindings::rpcrdma_debugfs_remove(self.root) };
    }
}

/// Creates a directory.
///
/// # Safety
///
/// `parent` is NULL, an error, or a directory.
unsafe fn create_dir(
    name: &core::ffi::CStr,
    parent: *mut bindings::dentry,
) -> *mut bindings::dentry {
    // SAFETY: By this function's contract.
    unsafe { bindings::rpcrdma_debugfs_create_dir(name.to_bytes_with_nul().as_ptr(), parent) }
}
