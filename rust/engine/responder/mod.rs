// SPDX-License-Identifier: GPL-2.0

//! The decisions of the responder.
//!
//! | file          | decides                                                           |
//! |---------------|-------------------------------------------------------------------|
//! | `read_chunks` | which chunks a Read list consists of                              |
//! | `reassembly`  | order of inline bytes and Read chunks in a Call                   |
//! | `call_header` | whether Read chunks begin behind the header of the RPC Call       |
//! | `eligible`    | whether Read chunks reduce eligible arguments only                |
//! | `reply`       | form of a Reply, and the results that go to Write chunks          |
//! | `remote_inv`  | which rkey the Send of a Reply invalidates                        |
//! | `exposed`     | which Replies are exposed for the client to pull, and until when  |

pub mod call_header;
pub mod eligible;
pub mod exposed;
mod read_chunks;
pub mod reassembly;
pub mod remote_inv;
pub mod reply;
