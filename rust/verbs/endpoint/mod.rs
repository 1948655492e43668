// SPDX-License-Identifier: GPL-2.0

//! One end of a connection: cm_id, queues, and their events.
//!
//! | file          | what                                                         |
//! |---------------|--------------------------------------------------------------|
//! | `ep`          | the endpoint: creation, posting, teardown                    |
//! | `ops`         | the callbacks that the client and the server implement       |
//! | `closing`     | finds what was posted behind the marker of a drain           |
//! | `events`      | the handlers of CM, QP and Receive events, which call these  |
//! | `completion`  | proofs of running in a CQ's worker                           |
//! | `cm_id`       | requests of an endpoint to the connection manager            |
//! | `cm_event`    | events of the connection manager, parameters of a connection |
//! | `listener`    | a listener that survives changes of its device               |
//! | `recv_ctxt`   | Receive buffers                                              |
//! | `invalidated` | an rkey that the peer has invalidated                        |
//! | `send_queue`  | reservation of Send Queue entries                            |
//! | `send_wr`     | the work request of a Send                                   |
//! | `wc`          | the status of a completion                                   |
//! | `bad_wr`      | the part of a chain that a failed post left unposted         |
//! | `in_doubt`    | what may have been posted or not                             |
//!
//! `ep`, `ops`, `events` and `completion` import each other; all others form a stack.

pub(super) mod bad_wr;
mod closing;
pub(super) mod cm_event;
pub(super) mod cm_id;
pub(super) mod completion;
pub(super) mod ep;
mod events;
pub(super) mod in_doubt;
pub(super) mod invalidated;
pub(super) mod listener;
pub(super) mod ops;
pub(super) mod recv_ctxt;
pub(super) mod send_queue;
pub(super) mod send_wr;
pub(super) mod wc;
