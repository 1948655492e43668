// SPDX-License-Identifier: GPL-2.0

//! What an administrator sees and sets: sysctl, statistics, tracepoints.

pub(crate) mod counter;
pub(crate) mod server;
pub(crate) mod sysctl;
pub(crate) mod trace;
