// SPDX-License-Identifier: GPL-2.0

//! RPC-over-RDMA transports for the kernel's NFS client and server.
//!
//! A map of the rooms, the modules directly under `rust/`, from the wire to the administrator:
//!
//! * `wire`: the bytes of RFC 8166 and RFC 8797, decoded and encoded;
//! * `engine`: the decisions, without I/O;
//! * `bindings`: the C side, as bindgen sees it, and where bytes lie in memory;
//! * `verbs`: RDMA as types;
//! * `sunrpc`: SUNRPC as safe types;
//! * `client`: the connecting end;
//! * `server`: the listening end;
//! * `admin`: sysctl, statistics, tracepoints.
//!
//! `client` and `server` stand on all of `wire`, `engine`, `verbs`, `sunrpc` and `admin`, and do
//! not know each other. `engine` stands on `wire`; `verbs` and `sunrpc` stand on `admin`, and these
//! three on `bindings`. All `unsafe` is in these four.
//!
//! `Documentation/architecture.rst` walks through a READ and a WRITE.

#![crate_name = "rpcrdma"]

use kernel::prelude::*;

mod bindings;
mod client;
#[allow(unreachable_pub, reason = "a crate of its own on the build host")]
mod engine;
#[path = "lib/mod.rs"] // rustc warns of a module `lib` otherwise
mod lib;
mod server;
mod sunrpc;
mod sysctl;
mod trace;
mod verbs;
#[allow(unreachable_pub, reason = "a crate of its own on the build host")]
mod wire;

#[pin_data]
struct RpcRdma {
    // Dropped from top to bottom: what was registered last goes first.
    _client: client::Client,
    _server: server::Server,
    #[pin]
    _devices: verbs::IbClient,
    _exit_barrier: sunrpc::ExitBarrier,
}

impl kernel::InPlaceModule for RpcRdma {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            bindings::layout::check()?;
            Ok(try_pin_init!(Self {
                _exit_barrier: sunrpc::ExitBarrier::awaited(),
                _devices <- verbs::IbClient::register(),
                _server: server::Server::register(module)?,
                _client: client::Client::register()?,
            }))
        })
    }
}

module! {
    type: RpcRdma,
    name: "rpcrdma",
    authors: ["The rpcrdma developers"],
    description: "RPC/RDMA transports for NFS client and server",
    license: "GPL",
    alias: ["svcrdma", "xprtrdma", "rpcrdma6"],
}
