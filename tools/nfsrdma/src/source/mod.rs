// SPDX-License-Identifier: GPL-2.0

//! Parsers, one for each place that the kernel shows something in. They only read: what the values
//! mean together is for [`crate::model`].

pub mod capture;
pub mod debugfs;
pub mod devices;
pub mod log;
pub mod module;
pub mod mountinfo;
pub mod mountstats;
pub mod network;
pub mod nfsd;
pub mod root;
pub mod switches;
pub mod sysctls;
pub mod values;
