// SPDX-License-Identifier: GPL-2.0

//! What the sources say, put together: a machine's mounts, connections, devices and settings at
//! one moment. [`crate::explain`] and [`crate::doctor`] judge it, [`crate::show`] prints it.

pub mod address;
pub mod connection;
pub mod rate;
pub mod sample;
pub mod snapshot;
