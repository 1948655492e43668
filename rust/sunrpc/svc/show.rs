// SPDX-License-Identifier: GPL-2.0

//! Shows a connection in its file.

use core::{
    fmt,
    ptr::NonNull, //
};

use crate::debugfs::{
    self,
    File,
    Lines,
    Show, //
};

use super::transport::Connection;

/// A connection, in its file.
///
/// # Invariants
///
/// - I1: The connection is not dropped before the file is removed.
struct StateOf<C: Connection>(NonNull<C>);

// SAFETY: What it points to is used by many threads.
unsafe impl<C: Connection> Send for StateOf<C> {}
// SAFETY: As above.
unsafe impl<C: Connection> Sync for StateOf<C> {}

impl<C: Connection> Show for StateOf<C> {
    fn show(&self, lines: &mut Lines) -> fmt::Result {
        // SAFETY: By I1, since the removal of the file waits for this function.
        unsafe { self.0.as_ref() }.show(lines)
    }
}

/// Numbers a connection, and creates its file, if there is memory. Sleeps.
///
/// # Safety
///
/// [`StateFile::remove`](super::state_file::StateFile::remove) is called before `connection` is
/// dropped, and before the connection's reference to the module is put.
pub(super) unsafe fn create_file<C: Connection>(connection: &C) {
    let state_file = connection.state_file();
    let number = state_file.set_number();
    // INVARIANT: I1: by this function's contract.
    let shown = StateOf(NonNull::from(connection));
    // SAFETY: By this function's contract. The module makes the tree before SUNRPC can take a
    // reference to the module, and its exit, which drops the tree, comes after the last put of one.
    let file = unsafe { File::create(&debugfs::SERVER, number, shown) };
    if let Ok(file) = file {
        state_file.set(file);
    }
}
