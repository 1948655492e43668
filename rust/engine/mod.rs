// SPDX-License-Identifier: GPL-2.0

//! The protocol decisions of both ends, without I/O.
//!
//! All functions are pure: they use no clock, lock, allocation or other part of the kernel. The
//! caller passes in the facts, and carries out the decision. The host tests compile the same files.
//!
//! | file or folder | decides                                                          |
//! |----------------|------------------------------------------------------------------|
//! | `agreement`    | inline thresholds and extensions of a connection                 |
//! | `inbound`      | whether a message is a Call or a Reply, and in which direction   |
//! | `credit`       | how many Calls may be outstanding, and how many Receives to post |
//! | `stall`        | whether a Send Queue has stalled                                 |
//! | `requester`    | form of a Call, placement of a Reply                             |
//! | `responder`    | reassembly of a Call, form of a Reply                            |

#![forbid(unsafe_code)]

pub mod agreement;
pub mod credit;
pub mod inbound;
pub mod requester;
pub mod responder;
pub mod stall;
