// SPDX-License-Identifier: GPL-2.0

//! RDMA Read and RDMA Write.
//!
//! | file       | what                                                                   |
//! |------------|------------------------------------------------------------------------|
//! | `rw_ctxt`  | one transfer between local pages and a segment of the peer's memory    |
//! | `remote`   | an address in the peer's memory                                        |
//! | `run`      | a run of contiguous memory, for the RDMA core: one of two variants     |
//! | `runs`     | the local memory of a transfer                                         |
//! | `rw_chain` | the transfers of one message, as the front of a chain of work requests |

pub(super) mod remote;
#[cfg(rpcrdma_has_rdma_rw_ctx_init_bvec)]
mod run;
#[cfg(not(rpcrdma_has_rdma_rw_ctx_init_bvec))]
#[path = "run_sg.rs"]
mod run;
mod runs;
pub(super) mod rw_chain;
pub(super) mod rw_ctxt;
