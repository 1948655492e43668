// SPDX-License-Identifier: GPL-2.0

//! The listening end: accept, receive, pull, reply.
//!
//! | file | what |
//! | --- | --- |
//! | `listener` | peers that want to connect, until a service thread accepts them |
//! | `limits` | what a connection may use, from tunables and device |
//! | `accept` | making a connection: its terms, its queues, the answer to the peer |
//! | `connection` | a connection as SUNRPC sees it: used by many threads, closed |
//! | `ep` | what the device reports: the handlers, and what they share with the threads |
//! | `recv_queue` | Receive buffers, and when they are posted |
//! | `call` | what is remembered of a Call until its Reply |
//! | `receive` | what a thread finds to do |
//! | `pull` | Calls with Read chunks: pulled, put together, delivered |
//! | `read_throttle` | how much is pulled at a time, and the Calls that wait for their turn |
//! | `mrs` | how many regions iWARP takes for that |
//! | `reply` | from an encoded Reply to a message that can be posted |
//! | `exposed` | Replies that stay exposed until the client has pulled them |
//! | `share` | shares in what all connections together may have |
//! | `error` | what a client is told whose Call cannot be served |
//! | `post` | from a message to the Send Queue |
//! | `stall_detector` | that the Send Queue does not come to a halt |
//! | `backchannel` | Calls that the service makes of its client |
//! | `traces` | what a trace tells of all this |
//!
//! Contexts: completion handlers run in one worker for Receives and one for Sends, side by side;
//! they take no lock that is held over a sleep. All else is a service thread's. There may be many
//! of those at a time on one connection, except in `receive` up to where it lets others in.
//!
//! No lock is taken while another is held, but for `ExposedReplies::state`, inside of
//! `Endpoint::exposing`. The locks are: `AcceptQueue::pending`; `ServerEp::incoming`;
//! `ExposedReplies::mr_mapper`; `ExposedReplies::state`; `StallDetector::progress`;
//! `XprtTimer::at`; `Endpoint::kept`; those in `Pool` and `SendQueue`; and that in `SparePages`,
//! for which nobody waits but who releases them.

#![forbid(unsafe_code)]

mod accept;
mod backchannel;
mod call;
mod connection;
mod ep;
mod error;
mod exposed;
mod limits;
mod listener;
mod page_charge;
mod post;
mod read_chunks;
mod read_mrs;
mod read_throttle;
mod receive;
mod recv_queue;
mod reply;
mod stall;
mod traces;
pub(crate) mod tunables;

use kernel::prelude::*;

use crate::{
    sunrpc::svc,
    sysctl, //
};
use listener::Listener;

/// The server, as long as it exists.
pub(crate) struct Server {
    // Fields go in this order: the class first, so that nobody is left to use the tunables.
    _backchannel: svc::BackchannelRegistration<Listener>,
    _class: svc::Registration<Listener>,
    _tunables: sysctl::Registration,
}

impl Server {
    /// Registers the transport classes and the tunables.
    pub(crate) fn register(module: &'static ThisModule) -> Result<Self> {
        let tunables = tunables::register()?;
        let class = svc::Registration::new(c"rdma", module)?;
        Ok(Self {
            _backchannel: svc::BackchannelRegistration::new(&class)?,
            _class: class,
            _tunables: tunables,
        })
    }
}
