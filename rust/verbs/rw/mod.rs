// SPDX-License-Identifier: GPL-2.0

//! RDMA Read and RDMA Write.
//!
//! | file       | what                                                          |
//! |------------|---------------------------------------------------------------|
//! | `rw_ctxt`  | one transfer: local pages and a remote segment                |
//! | `rw_chain` | the transfers of one message, as a chain of WRs               |

pub(super) mod rw_chain;
pub(super) mod rw_ctxt;
