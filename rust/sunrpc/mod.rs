// SPDX-License-Identifier: GPL-2.0

//! SUNRPC as safe types: transport classes, `rpc_xprt`, `svc_xprt`, `xdr_buf`, requests.

pub(crate) mod xdr;
