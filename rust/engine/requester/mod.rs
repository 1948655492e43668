// SPDX-License-Identifier: GPL-2.0

//! The decisions of the requester.
//!
//! | file            | question                                                  |
//! |-----------------|-----------------------------------------------------------|
//! | `call`          | how does a Call travel, and how may its Reply             |
//! | `match_reply`   | are the chunks of a Reply those that the Call offered     |
//! | `placement`     | where do the bytes of a Reply belong                      |
//! | `reply_history` | are Replies to this procedure usually long                |

pub mod call;
pub mod match_reply;
pub mod placement;
pub mod reply_history;
