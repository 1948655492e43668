// SPDX-License-Identifier: GPL-2.0

//! SUNRPC as safe types: transport classes, `rpc_xprt`, `svc_xprt`, `xdr_buf`, requests.

mod addr;
mod buffer;
mod claim;
mod credits;
mod reclaim;
mod refusal;
mod reverse;
mod slot;
pub(crate) mod svc;
pub(crate) mod xdr;
mod xprt;
mod xprt_class;
mod xprt_ops;

pub(crate) use claim::Claimed;
pub(crate) use claim::Fencing;
pub(crate) use claim::Scatter;
pub(crate) use credits::Credits;
pub(crate) use refusal::Refusal;
pub(crate) use reverse::ReversePool;
pub(crate) use reverse::ReverseReply;
pub(crate) use slot::Call;
pub(crate) use xprt::ConnectError;
pub(crate) use xprt::SendError;
pub(crate) use xprt::Transport;
pub(crate) use xprt::XprtHandle;
pub(crate) use xprt_class::ClassRegistration;
