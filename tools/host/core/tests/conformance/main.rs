// SPDX-License-Identifier: GPL-2.0

//! One test for each requirement that a pure function can satisfy, named after it.
//!
//! `r8166_4_1_2_1_...` is requirement 1 of RFC 8166 Section 4.1.2; `r8167`, `r8797`, `cm0` (the
//! draft that became RFC 8797) and `rr4` (the draft on reliable replies) are named alike. The
//! rulings on conflicts between the documents (`Documentation/rulings.rst`) have tests of their
//! own, `x1_...` to `x12_...`. What no document asks for, but the code has to get right, is in
//! `edges`.

mod edges;
mod r8166_2;
mod r8166_3_2;
mod r8166_3_4;
mod r8166_3_5;
mod r8166_4_1;
mod r8166_4_2;
mod r8166_4_3;
mod r8166_4_5;
mod r8166_4_6;
mod r8166_8;
mod r8167;
mod r8797;
mod rr4;
mod rulings;
mod stall;
mod support;
