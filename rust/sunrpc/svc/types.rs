// SPDX-License-Identifier: GPL-2.0

//! The types that a server's connection defines.

use crate::lib::foreign_buf::ForeignBuf;

/// What the files of this wing store for a connection, without knowing what the connection does
/// ([`Connection`](super::Connection)).
pub(crate) trait Types: Sized + Send + Sync + 'static {
    /// A received Call, from its receipt until its release. SUNRPC keeps it in `rq_xprt_ctxt`.
    type Call: ForeignBuf;
}
