// SPDX-License-Identifier: GPL-2.0

//! The connecting end: connect, send, reply, registration.
//!
//! | file         | what                                                     | runs in                  |
//! |--------------|----------------------------------------------------------|--------------------------|
//! | `transport`  | what SUNRPC calls                                        | see `sunrpc::xprt::ops`   |
//! | `connect`    | making a connection                                      | the connect worker       |
//! | `connect_wait`    | what is asked to make one, and what is answered          | connect worker, events   |
//! | `connection` | a connection as SUNRPC sees it                           | with the send lock       |
//! | `ep`    | what the device reports: the handlers, and their state   | their workers            |
//! | `send`       | choosing how a Call travels, and posting it              | an RPC's task            |
//! | `compose`    | exposing memory, and writing a message                   | an RPC's task            |
//! | `reply`      | what a message is, and which RPC it answers              | the receive worker       |
//! | `complete`   | fencing what an RPC exposed, and waking its task         | the queues' workers      |
//! | `pull`       | pulling a Reply that the server exposes                  | the queues' workers      |
//! | `backchannel`    | Calls of the server, and their Replies                   | receive worker, a task   |
//! | `receives`   | Receive buffers and their round                          | the receive worker       |
//! | `inflight`   | what a Call exposes, and whether a Reply speaks of that  |                          |
//! | `reply_histories`     | what Replies to a procedure have been like               |                          |
//! | `limits`      | what a device is good for                                |                          |
//! | `shared`     | what outlives a connection                               |                          |
//! | `stats`      | counters                                                 |                          |
//! | `traces`     | what a trace tells of Calls and Replies                  |                          |
//! | `tunables`   | files under `/proc/sys/sunrpc`                           |                          |
//!
//! Whoever connects, sends or ends a connection has the send lock (`XPRT_LOCKED`). Beside that run
//! one worker for Receives and one for Sends, and the events of the connection manager. Where a
//! lock is taken while another is held, it is in this order:
//!
//! * `Live::link`, then what the end of a connection takes, or `Endpoint::exposing` and after that
//!   `ClientEp::fenced`: a task gives up an RPC, and waits for its fence;
//! * `Dones::waiting`, then `Pool::taken`: an RDMA_DONE that waits is put into an idle message;
//! * `ReplyReads::line`, then `SendQueue::line`: a reservation that fails has others look again.
//!
//! Nothing is taken inside of `ConnectWait::state`, `ClientEp::fenced` and `Endpoint::exposing`.

#![forbid(unsafe_code)]

mod backchannel;
mod complete;
mod compose;
mod connect;
mod connect_wait;
mod connection;
mod ep;
mod inflight;
mod limits;
mod recv_queue;
mod reply;
mod reply_history;
mod reply_read;
mod send;
mod shared;
mod stats;
mod traces;
mod transport;
mod tunables;

use kernel::prelude::*;

use crate::{
    sunrpc::xprt::ClassRegistration,
    sysctl::Registration, //
};

/// The client's presence in the kernel.
pub(crate) struct Client {
    // Goes first: transports that are made look at the tunables, which stay.
    _class: ClassRegistration<transport::RdmaXprt>,
    _tunables: Registration,
}

impl Client {
    /// Offers the transport to SUNRPC.
    pub(crate) fn register() -> Result<Self> {
        let tunables = tunables::register()?;
        Ok(Self {
            _class: ClassRegistration::new()?,
            _tunables: tunables,
        })
    }
}
