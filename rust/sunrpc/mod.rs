// SPDX-License-Identifier: GPL-2.0

//! SUNRPC as safe types.
//!
//! | file or folder | what it does |
//! | --- | --- |
//! | `xprt` | the client's side: `rpc_xprt` and its requests |
//! | `svc` | the server's side: `svc_xprt` and its requests |
//! | `class` | what all transport classes have in common |
//! | `module_ref` | references to the module, and the barrier before its exit |
//! | `addr` | addresses as text |
//! | `xdr` | `xdr_buf`: a message in parts |
//!
//! `xprt` and `svc` do not know each other, but for the backchannel's transport class, which takes
//! the client's table of operations.

mod addr;
mod class;
mod credits;
mod error;
mod locks;
mod module_ref;
pub(crate) mod svc;
pub(crate) mod xdr;
pub(crate) mod xprt;

pub(crate) use module_ref::ExitBarrier;
