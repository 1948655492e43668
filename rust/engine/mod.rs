// SPDX-License-Identifier: GPL-2.0

//! The decisions of both ends, without I/O.
//!
//! Pure functions and small values: no clocks, no locks, no memory of their own, no kernel. What
//! they need is passed in, what they decide is a value that the caller executes, prints in a trace
//! or checks in a test. The kernel-facing rooms do what is said here and nothing else.
//!
//! | folder or file | question                                                              |
//! |----------------|-----------------------------------------------------------------------|
//! | `agreement`    | what may be sent on this connection, and how                          |
//! | `inbound`      | is this message a Call or a Reply, which way, and must it be refused  |
//! | `credit`       | how many Calls may be outstanding, how many Receives are to be posted |
//! | `requester`    | the decisions of the end that sends Calls                             |
//! | `responder`    | the decisions of the end that answers them                            |

#![forbid(unsafe_code)]

pub mod agreement;
pub mod credit;
pub mod inbound;
pub mod requester;
pub mod responder;
