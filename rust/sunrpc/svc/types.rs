// SPDX-License-Identifier: GPL-2.0

//! The types that a server's connection brings along.

use crate::lib::foreign_buf::ForeignBuf;

/// What the files of this wing store for a connection, without knowing what the connection does
/// ([`Connection`](super::Connection)).
pub(crate) trait Types: Sized + Send + Sync + 'static {
    /// What a Call is kept in, from its receipt until it is released.
    type Call: ForeignBuf;
}
