// SPDX-License-Identifier: GPL-2.0

//! A connection as SUNRPC sees it: made, used by whoever has the send lock, closed.

use crate::{
    engine::requester::call::CallLimits,
    verbs::EndpointBox, //
};

use super::ep::ClientEp;

/// A connection that is good for sending.
pub(super) struct Connection {
    pub(super) ep: EndpointBox<ClientEp>,
    pub(super) limits: CallLimits,
}
