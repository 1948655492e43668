// SPDX-License-Identifier: GPL-2.0

//! SUNRPC as safe types: transport classes, `rpc_xprt`, `svc_xprt`, `xdr_buf`, requests.
//!
//! | file | what it does |
//! | --- | --- |
//! | `transport` | what a client's transport is to do, and the errors it gives |
//! | `xprt` | `rpc_xprt` with what belongs to it, and who may touch what |
//! | `handle` | counted references to it, for what outlives SUNRPC's calls |
//! | `class` | what all classes of transports have in common |
//! | `xprt_class` | the class that SUNRPC makes transports with |
//! | `xprt_ops` | the table of operations, and where they run |
//! | `request_ops`, `connection_ops`, `reverse_ops` | the operations |
//! | `pause` | the time between attempts to connect |
//! | `slot`, `buffer` | the place of an RPC, and its memory |
//! | `phase` | how far the RPC is, and who may touch what it exposes |
//! | `call` | what sends a Call sees of it |
//! | `claim`, `refusal` | how an RPC ends: with a Reply, or without |
//! | `credits` | credits of Calls that nobody waits for any more |
//! | `reverse` | reverse Calls that the client takes |
//! | `last_put` | references to a transport that are put without waiting |
//! | `module_hold` | what keeps the module from being unloaded |
//! | `locks` | SUNRPC's locks as guards |
//! | `reclaim` | allocations of those who are needed to free memory |
//! | `addr` | addresses as text |
//! | `xdr` | `xdr_buf`: a message in pieces |
//! | `svc` | the server's side |

mod addr;
mod buffer;
mod call;
mod claim;
mod class;
mod connection_ops;
mod credits;
mod handle;
mod last_put;
mod locks;
mod module_hold;
mod pause;
mod phase;
mod reclaim;
mod refusal;
mod request_ops;
mod reverse;
mod reverse_ops;
mod slot;
pub(crate) mod svc;
mod transport;
pub(crate) mod xdr;
mod xprt;
mod xprt_class;
mod xprt_ops;

pub(crate) use call::{
    Call,
    Committed, //
};
pub(crate) use claim::{
    Claimed,
    Fencing,
    Scatter, //
};
pub(crate) use credits::Credits;
pub(crate) use handle::XprtHandle;
pub(crate) use module_hold::LastSteps;
pub(crate) use reclaim::Scope as ReclaimScope;
pub(crate) use refusal::Refusal;
pub(crate) use reverse::{
    ReversePool,
    ReverseReply, //
};
pub(crate) use transport::{
    ConnectError,
    SendError,
    Transport, //
};
pub(crate) use xprt_class::ClassRegistration;
