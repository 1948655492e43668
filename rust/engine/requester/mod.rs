// SPDX-License-Identifier: GPL-2.0

//! The decisions of the requester.
//!
//! | file            | decides                                                         |
//! |-----------------|-----------------------------------------------------------------|
//! | `call`          | form of a Call, and the chunks it offers for its Reply          |
//! | `match_reply`   | whether a Reply returns the chunks that its Call offered        |
//! | `placement`     | which bytes of a Reply go to the head, the pages and the tail   |
//! | `reply_history` | whether to offer a Reply chunk, by earlier Replies              |

pub mod call;
pub mod match_reply;
pub mod placement;
pub mod reply_history;
