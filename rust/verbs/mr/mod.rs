// SPDX-License-Identifier: GPL-2.0

//! Memory regions for FRWR: mapping, registration, invalidation.
//!
//! | file         | what                                                        |
//! |--------------|-------------------------------------------------------------|
//! | `frwr`       | one MR                                                      |
//! | `mr_list`    | the MRs of one message, by state                            |
//! | `mr_pool`    | idle MRs of a connection                                    |
//! | `mapper`     | mapping memory with idle MRs                                |
//! | `refresh`    | allocation of more MRs                                      |
//! | `sg`         | the scatterlist of an MR                                    |
//! | `rkey`       | the sequence of key bytes of an rkey                       |
//! | `rkey_owner` | which Call an rkey was given out for                        |
//! | `fence`      | invalidation, and the proof that it has completed           |

pub(super) mod fence;
pub(super) mod frwr;
pub(super) mod mapper;
pub(super) mod mr_list;
pub(super) mod mr_pool;
pub(super) mod refresh;
pub(super) mod rkey;
pub(super) mod rkey_owner;
pub(super) mod sg;
