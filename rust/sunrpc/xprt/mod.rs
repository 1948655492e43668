// SPDX-License-Identifier: GPL-2.0

//! The client's side of SUNRPC: `rpc_xprt` and its requests.
//!
//! | file | what it does |
//! | --- | --- |
//! | `types` | the types that a client's transport brings along |
//! | `transport` | what a client's transport implements |
//! | `connect_error` | why a connection was not established |
//! | `rpc_xprt` | `rpc_xprt` and its private part, and who may access what |
//! | `handle` | counted references to it, for what outlives SUNRPC's calls |
//! | `class` | the class by which SUNRPC creates transports |
//! | `ops` | the table of operations, and where they run |
//! | `request_ops`, `connection_ops`, `backchannel_ops` | the operations |
//! | `backoff` | the delay between connection attempts |
//! | `slot`, `buffer` | the slot of an RPC, and its memory |
//! | `slot_state` | the state of an RPC, and who may access what it exposes |
//! | `call` | a Call, as the function that sends it sees it |
//! | `claim`, `refusal` | how an RPC ends: with a Reply, or without |
//! | `backchannel` | backchannel Calls that the client accepts |
//! | `deferred_put` | references to a transport that are put without sleeping |
//! | `reclaim` | allocations on the memory reclaim path |

mod backchannel;
mod backchannel_ops;
mod backoff;
mod buffer;
mod call;
mod claim;
mod class;
mod connect_error;
mod connection_ops;
mod deferred_put;
mod handle;
mod ops;
mod reclaim;
mod refusal;
mod request_ops;
mod rpc_xprt;
mod slot;
mod slot_state;
mod transport;
mod types;

pub(crate) use super::{
    credits::Credits,
    error::SendError, //
};
pub(crate) use backchannel::{
    BackchannelPool,
    BackchannelReply, //
};
pub(crate) use call::{
    Call,
    Committed, //
};
pub(crate) use claim::{
    Abandoned,
    Claimed,
    Fencing,
    Scatter, //
};
pub(crate) use class::ClassRegistration;
pub(crate) use connect_error::ConnectError;
pub(crate) use handle::XprtHandle;
pub(crate) use reclaim::Scope as ReclaimScope;
pub(crate) use slot_state::Refusal;
pub(crate) use transport::Transport;
pub(crate) use types::{
    Connection,
    Types, //
};
