// SPDX-License-Identifier: GPL-2.0

//! A simulation: the rooms of the module, as they stand, on the build host.
//!
//! `client`, `server`, `verbs`, `sunrpc` and all that they use are compiled by path. What is
//! beneath them is a stand-in: the kernel crate (`kernel/`), and the C interface (`bindings`),
//! which is an RDMA device, a connection manager and SUNRPC. A run follows from its seed alone.

#![feature(arbitrary_self_types)]
#![allow(
    dead_code,
    unused_imports,
    unused_unsafe,
    reason = "the module's files are used in part"
)]
#![recursion_limit = "256"]

#[macro_use]
extern crate kernel;

#[cfg(test)]
mod addresses;
mod bindings;
mod stage;

#[path = "../../../../rust/compat/mod.rs"]
mod compat;
#[path = "../../../../rust/debugfs/mod.rs"]
mod debugfs;
#[allow(unreachable_pub, reason = "the host tests compile it as a crate")]
#[path = "../../../../rust/engine/mod.rs"]
mod engine;
#[path = "../../../../rust/lib/mod.rs"]
mod lib;
#[path = "../../../../rust/server/mod.rs"]
mod server;
#[path = "../../../../rust/sunrpc/mod.rs"]
mod sunrpc;
#[path = "../../../../rust/sysctl.rs"]
mod sysctl;
#[path = "../../../../rust/trace/mod.rs"]
mod trace;
#[path = "../../../../rust/verbs/mod.rs"]
mod verbs;
#[allow(unreachable_pub, reason = "the host tests compile it as a crate")]
#[path = "../../../../rust/wire/mod.rs"]
mod wire;

#[path = "../../../../rust/client/mod.rs"]
mod client;

pub use kernel::{chance, sched::steps};
pub use stage::outcome::Seen;
pub use stage::planted::PLANTED;
pub use stage::plays::{run, Play, PLAYS};
