// SPDX-License-Identifier: GPL-2.0

//! The sending side of a server.
//!
//! | file        | what                                                         |
//! |-------------|--------------------------------------------------------------|
//! | `sender`    | the pools and the Send Queue that all nfsd threads share     |
//! | `send_ctxt` | one message: buffer, pages, RDMA Writes                      |
//! | `expose`    | one message whose pages the client is to read                |
//! | `post`      | posting a message, and its completion                        |
//! | `call_read` | RDMA Reads that fetch the Read chunks of a Call              |
//! | `post_read` | posting these Reads, and their completion                    |

pub(super) mod call_read;
pub(super) mod expose;
mod post;
mod post_read;
pub(super) mod send_ctxt;
pub(super) mod sender;
