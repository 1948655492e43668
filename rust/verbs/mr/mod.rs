// SPDX-License-Identifier: GPL-2.0

//! Memory regions for FRWR: mapping, registration, invalidation.
//!
//! | file         | what                                                        |
//! |--------------|-------------------------------------------------------------|
//! | `mr_alloc`   | one MR: its parts, allocation and end                       |
//! | `ib_mr`      | its `struct ib_mr`, and what the peer is told of it         |
//! | `frwr`       | operations on one MR                                        |
//! | `mr_list`    | the MRs of one message, by state                            |
//! | `mr_pool`    | all MRs of a connection                                     |
//! | `mapper`     | mapping memory with idle MRs                                |
//! | `refresh`    | allocation of more MRs                                      |
//! | `sg`         | the scatterlist of an MR                                    |
//! | `rkey`       | the sequence of key bytes of an rkey                        |
//! | `rkey_owner` | which Call an rkey was given out for                        |
//! | `exposes`    | a context that exposes memory                               |
//! | `fence`      | invalidation                                                |

pub(super) mod exposes;
pub(super) mod fence;
pub(super) mod frwr;
pub(super) mod ib_mr;
pub(super) mod mapper;
pub(super) mod mr_alloc;
pub(super) mod mr_list;
pub(super) mod mr_pool;
pub(super) mod refresh;
mod rkey;
mod rkey_owner;
mod sg;
