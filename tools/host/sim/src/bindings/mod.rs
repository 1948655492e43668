// SPDX-License-Identifier: GPL-2.0

//! The C interface of the kernel, in Rust: structures with the members that the module uses, and
//! the functions that it calls.
//!
//! | file            | what                                                        |
//! |-----------------|-------------------------------------------------------------|
//! | `types`         | structures of the kernel itself                             |
//! | `types_rdma`    | those of the RDMA core                                      |
//! | `types_sunrpc`  | those of SUNRPC                                             |
//! | `constants`     | constants                                                   |
//! | `memory`        | pages, `kmalloc()`, and other small functions               |
//! | `arena`         | where pages come from                                       |
//! | `dma`           | the IOMMU: what a device may access, and when               |
//! | `fabric`        | the RDMA device: its queues and regions                     |
//! | `fabric_memory` | the memory that peers and work requests access              |
//! | `credit_law`    | a law that each message shows                               |
//! | `fabric_recv`   | what arrives, and takes a Receive                           |
//! | `fabric_send`   | what the work requests of a Send Queue do                   |
//! | `fabric_steps`  | the steps of the device: Sends, Receives, completions       |
//! | `fabric_peer`   | queue pairs and regions of the stage                        |
//! | `ib_core`       | clients of the RDMA core, and their devices                 |
//! | `hotplug`       | devices that are removed, and addresses that move           |
//! | `verbs`         | `ib_*()`: domains, completion queues, regions               |
//! | `verbs_qp`      | `ib_*()`: queue pairs                                       |
//! | `verbs_post`    | `ib_post_send()`, `ib_post_recv()`                          |
//! | `rw`            | `rdma_rw_ctx_*()`                                           |
//! | `rw_mr`         | the same over iWARP, where the sink of a Read is registered |
//! | `iwarp_law`     | what only iWARP asks for                                    |
//! | `books`         | what the stand-ins know of connections                      |
//! | `cm`            | the connection manager                                      |
//! | `rdma_cm`       | `rdma_*()`                                                  |
//! | `cm_steps`      | messages of the CM, and calls of its handlers               |
//! | `cm_peer`       | the CM for peers of the stage                               |
//! | `svc`           | SUNRPC of the server: transports, their queue               |
//! | `nfsd_rqst`     | the requests of nfsd's threads                              |
//! | `nfsd_threads`  | what nfsd's threads do with each transport                  |
//! | `xprt`          | SUNRPC of the client: transports                            |
//! | `wait_queue`    | wait queues of tasks                                        |
//! | `xprt_lock`     | send lock and congestion window of a transport              |
//! | `xprt_connect`  | connecting a transport                                      |
//! | `rqst`          | the requests of the client                                  |
//! | `rpc_tasks`     | RPC tasks: sending, sleeping, ending                        |
//! | `rpc`           | a client, which starts tasks                                |
//! | `rpc_clock`     | timeouts of tasks                                           |
//! | `rpc_pages`     | pages of Calls and Replies                                  |
//! | `rpc_call`      | a task that sends a Call                                    |
//! | `rpc_reply`     | a task that sends a Reply                                   |
//! | `slots`         | requests for which a transport has room                     |
//! | `trace`         | trace events                                                |
//! | `backchannel`   | SUNRPC of backchannel Calls, at both ends                   |

#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    missing_docs,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "the interface is that of C, whose contracts are documented there"
)]

mod arena;
pub(crate) mod backchannel;
pub(crate) mod books;
pub(crate) mod cm;
pub(crate) mod cm_peer;
pub(crate) mod cm_steps;
mod constants;
pub(crate) mod credit_law;
pub(crate) mod debugfs;
pub(crate) mod dma;
pub(crate) mod fabric;
mod fabric_memory;
pub(crate) mod fabric_peer;
mod fabric_recv;
mod fabric_send;
pub(crate) mod fabric_steps;
pub(crate) mod hotplug;
pub(crate) mod ib_core;
mod iwarp_law;
pub(crate) mod memory;
pub(crate) mod nfsd_rqst;
pub(crate) mod nfsd_threads;
mod rdma_cm;
pub(crate) mod rpc;
mod rpc_call;
mod rpc_clock;
mod rpc_pages;
mod rpc_reply;
mod rpc_tasks;
pub(crate) mod rqst;
pub(crate) mod rw;
mod rw_mr;
mod slots;
pub(crate) mod svc;
mod trace;
mod types;
mod types_rdma;
mod types_sunrpc;
mod verbs;
mod verbs_post;
mod verbs_qp;
mod wait_queue;
pub(crate) mod xprt;
pub(crate) mod xprt_connect;
mod xprt_lock;

pub(crate) use backchannel::*;
pub(crate) use cm::*;
pub(crate) use constants::*;
pub(crate) use debugfs::*;
pub(crate) use dma::*;
pub(crate) use fabric::*;
pub(crate) use fabric_memory::*;
pub(crate) use fabric_peer::*;
pub(crate) use fabric_steps::*;
pub(crate) use ib_core::*;
pub(crate) use memory::*;
pub(crate) use rdma_cm::*;
pub(crate) use rqst::*;
pub(crate) use rw::*;
pub(crate) use slots::*;
pub(crate) use svc::*;
pub(crate) use trace::*;
pub(crate) use types::*;
pub(crate) use types_rdma::*;
pub(crate) use types_sunrpc::*;
pub(crate) use verbs::*;
pub(crate) use verbs_post::*;
pub(crate) use verbs_qp::*;
pub(crate) use wait_queue::*;
pub(crate) use xprt::*;
pub(crate) use xprt_connect::*;
pub(crate) use xprt_lock::*;

pub(crate) use kernel::bindings::*;

/// The version of the module.
pub(crate) const VERSION: &str = "simulated";
