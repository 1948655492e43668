// SPDX-License-Identifier: GPL-2.0

//! RPC-over-RDMA transports for the kernel's NFS client and server.
//!
//! C: module.c, rpc_rdma_init(), rpc_rdma_cleanup()
//!
//! The modules under `rust/` are called rooms:
//!
//! | room       | what                                                   |
//! |------------|--------------------------------------------------------|
//! | `wire`     | messages of RFC 8166 and RFC 8797, decoded and encoded |
//! | `engine`   | protocol decisions, without I/O                        |
//! | `bindings` | the C interface                                        |
//! | `compat`   | what older kernels lack                                |
//! | `lib`      | lists, pages and other small types                     |
//! | `trace`    | trace events                                           |
//! | `sysctl`   | tables of files under `/proc/sys`                      |
//! | `debugfs`  | files under `/sys/kernel/debug`                        |
//! | `verbs`    | RDMA verbs and the connection manager as safe types    |
//! | `sunrpc`   | SUNRPC as safe types                                   |
//! | `client`   | the transport of the NFS client                        |
//! | `server`   | the transport of the NFS server                        |
//!
//! Imports (`tools/rooms/rooms.toml` has the rules):
//!
//! ```text
//! client, server         -> wire, engine, lib, trace, sysctl, debugfs, verbs, sunrpc
//! sunrpc                 -> bindings, compat, lib, trace, debugfs
//! verbs                  -> bindings, lib, trace
//! trace, sysctl, debugfs -> bindings, lib
//! lib                    -> bindings, compat
//! compat                 -> bindings
//! engine                 -> wire
//! ```
//!
//! `wire`, `engine`, `client` and `server` forbid unsafe code.
//!
//! `Documentation/architecture.rst` follows a READ and a WRITE through the rooms.

// The declarative `try_pin_init!` of older kernels recurses for each field of a structure.
#![recursion_limit = "256"]

use kernel::prelude::*;

mod bindings;
mod client;
mod compat;
mod debugfs;
#[allow(unreachable_pub, reason = "the host tests compile it as a crate")]
mod engine;
#[path = "lib/mod.rs"] // rustc warns about a module `lib` otherwise
mod lib;
mod server;
mod sunrpc;
mod sysctl;
mod trace;
mod verbs;
#[allow(unreachable_pub, reason = "the host tests compile it as a crate")]
mod wire;

#[pin_data]
struct RpcRdma {
    // Dropped from top to bottom, the reverse of the registration order. The transport classes are
    // registered last: user space can create transports as soon as SUNRPC has a class, and a failed
    // init frees the module even if transports hold references to it. `Server::register` begins
    // with the class of backchannel transports, which user space cannot create. This step fails if
    // another module has registered its classes; no later step fails.
    _client: client::Client,
    _server: server::Server,
    #[pin]
    _devices: verbs::IbClient,
    _client_tunables: sysctl::Registration,
    _server_tunables: sysctl::Registration,
    _debugfs: debugfs::Tree,
    _exit_barrier: sunrpc::ExitBarrier,
}

impl kernel::InPlaceModule for RpcRdma {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        compat::pin_init_scope(move || {
            pr_info!(
                "RPC/RDMA transports in Rust, version {}\n",
                bindings::VERSION
            );
            bindings::layout::check()?;
            Ok(try_pin_init!(Self {
                _exit_barrier: sunrpc::ExitBarrier::new(),
                _debugfs: debugfs::Tree::new()?,
                _server_tunables: server::register_tunables()?,
                _client_tunables: client::register_tunables()?,
                _devices <- verbs::IbClient::register(),
                _server: server::Server::register(module)?,
                _client: client::Client::register(module)?,
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
