// SPDX-License-Identifier: GPL-2.0

//! SUNRPC as safe types: transport classes, `rpc_xprt`, `svc_xprt`, `xdr_buf`, requests.

mod addr;
mod buffer;
mod call;
mod claim;
mod connection_ops;
mod credits;
mod free_slots;
mod handle;
mod locks;
mod reclaim;
mod refusal;
mod request_ops;
mod reverse;
mod slot;
pub(crate) mod svc;
mod transport;
pub(crate) mod xdr;
mod xprt;
mod xprt_class;
mod xprt_ops;

pub(crate) use call::Call;
pub(crate) use claim::Claimed;
pub(crate) use claim::Fencing;
pub(crate) use claim::Scatter;
pub(crate) use credits::Credits;
pub(crate) use handle::XprtHandle;
pub(crate) use refusal::Refusal;
pub(crate) use reverse::ReversePool;
pub(crate) use reverse::ReverseReply;
pub(crate) use transport::ConnectError;
pub(crate) use transport::SendError;
pub(crate) use transport::Transport;
pub(crate) use xprt_class::ClassRegistration;
