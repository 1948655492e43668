// SPDX-License-Identifier: GPL-2.0

//! What an administrator sees and sets: sysctl, statistics, tracepoints.
//!
//! | file      | what                                  |
//! |-----------|---------------------------------------|
//! | `sysctl`  | files under `/proc/sys`               |
//! | `counter` | counters and gauges                   |
//! | `server`  | the files of the listening end        |
//! | `trace`   | trace events, and what they are given |

pub(crate) mod counter;
pub(crate) mod server;
pub(crate) mod sysctl;
pub(crate) mod trace;
