// SPDX-License-Identifier: GPL-2.0

//! The sending side of a client.
//!
//! | file           | what                                                      |
//! |----------------|-----------------------------------------------------------|
//! | `sender`       | building and posting a Call, under the send lock          |
//! | `sendctx_ring` | the ring of send contexts                                 |
//! | `ctrl_send`    | preallocated Sends that need no send lock                 |
//! | `reply_read`   | RDMA Reads that fetch an exposed Reply                    |

pub(super) mod ctrl_send;
pub(super) mod reply_read;
pub(super) mod sendctx_ring;
pub(super) mod sender;
