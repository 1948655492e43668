// SPDX-License-Identifier: GPL-2.0

//! The decisions of both ends, without I/O.
//!
//! Pure functions and small values: no clocks, no locks, no memory of their own, no kernel. What
//! they need is passed in, what they decide is a value that the caller executes, prints in a trace
//! or checks in a test. The kernel-facing rooms do what is said here and nothing else.
//!
//! | file          | question                                                              | end       |
//! |---------------|-----------------------------------------------------------------------|-----------|
//! | `agreement`   | what may be sent on this connection, and how                          | both      |
//! | `inbound`     | is this message a Call or a Reply, which way, and must it be refused  | both      |
//! | `credit`      | how many Calls may be outstanding, how many Receives are to be posted | both      |
//! | `call`        | how does a Call travel, and how may its Reply                         | requester |
//! | `returned`    | are the chunks of a Reply those that were offered                     | requester |
//! | `placement`   | where do the octets of a Reply belong                                 | requester |
//! | `habit`       | are Replies to this procedure usually long                            | requester |
//! | `assembly`    | how does a Call with Read chunks become whole                         | responder |
//! | `read_chunks` | which chunks are in a Read list                                       | responder |
//! | `header`      | where do the arguments of a Call begin                                | responder |
//! | `reply`       | how does a Reply travel                                               | responder |
//! | `remote`      | which handle may be invalidated by the Send of a Reply                | responder |
//! | `exposed`     | which Replies are exposed, until when, and how many may be            | responder |
//! | `progress`    | has a queue come to a halt                                            | responder |

#![forbid(unsafe_code)]

pub mod agreement;
pub mod assembly;
pub mod call;
pub mod credit;
pub mod exposed;
pub mod habit;
pub mod header;
pub mod inbound;
pub mod placement;
pub mod progress;
mod read_chunks;
pub mod remote;
pub mod reply;
pub mod returned;
