// SPDX-License-Identifier: GPL-2.0

//! The sending side of a server.
//!
//! | file        | what                                                         |
//! |-------------|--------------------------------------------------------------|
//! | `sender`    | the pools and the Send Queue that all nfsd threads share     |
//! | `send_ctxt` | one message: buffer, pages, RDMA Writes                      |
//! | `post`      | posting a message, and its completion                        |
//! | `expose`    | posting a message that exposes its pages                     |
//! | `call_read` | RDMA Reads that fetch the Read chunks of a Call              |

pub(super) mod call_read;
pub(super) mod expose;
pub(super) mod post;
pub(super) mod send_ctxt;
pub(super) mod sender;
