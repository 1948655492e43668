// SPDX-License-Identifier: GPL-2.0

//! Tests of the requirements that pure functions satisfy.
//!
//! A test is named after its requirement: `r8166_4_1_2_1_...` tests requirement 1 of RFC 8166
//! Section 4.1.2. Other prefixes are `r8167`, `r8797`, `cm0` (the draft that became RFC 8797),
//! `ri3` (the draft on Remote Invalidation) and `rr4` (the draft on reliable replies). `x1_...` to
//! `x12_...` test the rulings on conflicts between these documents (`Documentation/rulings.rst`).
//! `edges`, `stall` and `views` test properties that no document requires.

mod edges;
mod match_reply;
mod r8166_2;
mod r8166_3_2;
mod r8166_3_4;
mod r8166_3_4_6;
mod r8166_3_5;
mod r8166_4_1;
mod r8166_4_2;
mod r8166_4_3;
mod r8166_4_5;
mod r8166_4_6;
mod r8166_6;
mod r8166_8;
mod r8167;
mod r8797;
mod rr4;
mod rr4_slots;
mod rulings;
mod stall;
mod support;
mod views;
