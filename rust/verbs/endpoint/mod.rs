// SPDX-License-Identifier: GPL-2.0

//! One end of a connection: CM identifier, queues, and the events of both.
//!
//! | file          | what                                                      |
//! |---------------|-----------------------------------------------------------|
//! | `ep`          | the endpoint, its creation and teardown                   |
//! | `ops`         | the callbacks that a client or server endpoint implements |
//! | `events`      | dispatch of CM and QP events to these callbacks           |
//! | `cm_id`       | requests to the connection manager                        |
//! | `cm_event`    | its events, and the parameters of a connection            |
//! | `listener`    | listening, also when an address moves                     |
//! | `completion`  | contexts of completion handlers                           |
//! | `wc`          | completion status                                         |
//! | `recv_ctxt`   | Receive buffers, posted and completed                     |
//! | `invalidated` | an rkey that the peer has invalidated                     |
//! | `send_queue`  | reservation of Send Queue entries                         |
//! | `send_wr`     | the work request of a Send                                |
//! | `bad_wr`      | the part of a WR chain that a failed post left unposted   |

pub(super) mod bad_wr;
pub(super) mod cm_event;
pub(super) mod cm_id;
pub(super) mod completion;
pub(super) mod ep;
pub(super) mod events;
pub(super) mod invalidated;
pub(super) mod listener;
pub(super) mod ops;
pub(super) mod recv_ctxt;
pub(super) mod send_queue;
pub(super) mod send_wr;
mod wc;
