// SPDX-License-Identifier: GPL-2.0

//! A connection as SUNRPC sees it: created, used by the holder of the send lock, closed.

use crate::sunrpc::xprt;

use super::shared::RdmaXprt;

/// A connection that is good for sending.
pub(super) type Connection = xprt::Connection<RdmaXprt>;
