// SPDX-License-Identifier: GPL-2.0

//! Shows the connections of NFS over RDMA, says what limits them and what went wrong, and draws
//! their course. Data moves one way:
//!
//! | module                  | what                                                 |
//! |-------------------------|------------------------------------------------------|
//! | [`source`]              | parsers of what the kernel shows, one for each place |
//! | [`model`]               | the values put together: snapshots, samples, rates   |
//! | [`explain`], [`doctor`] | rules that look at a snapshot and find causes        |
//! | [`recording`]           | files of samples                                     |
//! | [`show`]                | tables, findings and pictures                        |
//! | [`cli`]                 | the commands                                         |

pub mod cli;
pub mod doctor;
pub mod error;
pub mod explain;
pub mod finding;
pub mod model;
pub mod recording;
pub mod show;
pub mod source;
