// SPDX-License-Identifier: GPL-2.0

//! RDMA Read and RDMA Write.
//!
//! | file       | what                                                                   |
//! |------------|------------------------------------------------------------------------|
//! | `rw_ctxt`  | one transfer between local pages and a segment of the peer's memory    |
//! | `rw_chain` | the transfers of one message, as the front of a chain of work requests |

pub(super) mod rw_chain;
pub(super) mod rw_ctxt;
