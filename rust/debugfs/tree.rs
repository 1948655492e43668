// SPDX-License-Identifier: GPL-2.0

//! The whole tree.

use core::ptr;

use kernel::{
    prelude::*,
    sync::atomic::ordering::Full, //
};

use crate::{
    bindings,
    lib::sync::Atomic, //
};

use super::{
    dir::{
        CLIENT,
        SERVER, //
    },
    ended::{
        self,
        EndedConnections, //
    },
    file::{
        self,
        File,
        Removable, //
    }, //
};

/// There is or was a [`Tree`].
static MADE: Atomic<bool> = Atomic::new(false);

/// The whole tree. Dropping it removes the tree.
///
/// # Invariants
///
/// - I1: `root` is what `debugfs_create_dir()` returned, and is not removed.
pub(crate) struct Tree {
    root: *mut bindings::dentry,
    /// The file `server/ended`.
    ended: Option<KBox<dyn Removable>>,
}

// SAFETY: Any thread may remove a directory.
unsafe impl Send for Tree {}
// SAFETY: A shared reference has no methods.
unsafe impl Sync for Tree {}

impl Tree {
    /// Creates the tree, with the file of [`EndedConnections`].
    ///
    /// # Errors
    ///
    /// `EBUSY` if there was one already, `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        if MADE.xchg(true, Full) {
            return Err(EBUSY);
        }
        // SAFETY: `MADE` was not set, so this runs once. debugfs accepts an error as a parent, and
        // returns one for its children. The drop of the tree removes the directories, after it has
        // set both to NULL.
        let mut tree = unsafe {
            file::init();
            ended::init();
            let root = create_dir(c"rpcrdma", ptr::null_mut());
            CLIENT.set(create_dir(c"client", root));
            SERVER.set(create_dir(c"server", root));
            // INVARIANT: I1: just created.
            Self { root, ended: None }
        };
        // SAFETY: This is the tree, whose drop removes the file first.
        tree.ended = Some(unsafe { File::create(&SERVER, "ended", EndedConnections)? });
        Ok(tree)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for dir in [&CLIENT, &SERVER] {
            // SAFETY: NULL.
            unsafe { dir.set(ptr::null_mut()) };
        }
        if let Some(ended) = self.ended.as_ref() {
            ended.remove();
        }
        // SAFETY: By I1. No file is left, by the contract of `File::create`; the directories below
        // go with this one.
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
