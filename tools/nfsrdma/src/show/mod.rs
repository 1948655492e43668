// SPDX-License-Identifier: GPL-2.0

//! What is printed: tables, findings, and pictures.

pub mod findings;
pub mod graph;
pub mod rates;
pub mod status;
pub mod table;
