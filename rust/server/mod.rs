// SPDX-License-Identifier: GPL-2.0

//! The listening end: accept, receive, read chunks, reply.
//!
//! A file uses only the files above it in this table.
//!
//! | file             | what                                                | runs in               |
//! |------------------|-----------------------------------------------------|-----------------------|
//! | `tunables`       | sysctl files under `/proc/sys/sunrpc/svc_rdma`      | any task              |
//! | `limits`         | queue depths and message sizes that a device allows | nfsd thread           |
//! | `page_charge`    | charges against global page limits                  | any                   |
//! | `stall`          | detection of a stalled Send Queue                   | nfsd thread           |
//! | `read_mrs`       | MRs that a Call's RDMA Reads need on iWARP          | nfsd thread           |
//! | `call`           | state of a Call, kept with its Receive buffer       | nfsd thread           |
//! | `recv_queue`     | Receive Queue and its buffers                       | receive worker        |
//! | `read_throttle`  | page limits for RDMA Reads, and Calls that wait     | nfsd thread, workers  |
//! | `exposed`        | table of Replies that the client may read           | nfsd thread, workers  |
//! | `send_backlog`   | chains that wait for room on the Send Queue         | nfsd thread, workers  |
//! | `counters`       | counters of one connection                          | workers, nfsd thread  |
//! | `ep`             | state of one connection                             | any                   |
//! | `connection`     | a connection as SUNRPC sees it                      | nfsd thread           |
//! | `state`          | text of a connection's file                         | a task that reads it  |
//! | `traces`         | trace events with more than one argument to compute | any                   |
//! | `accept`         | connection setup                                    | nfsd thread           |
//! | `listener`       | connection requests, until a thread accepts them    | CM, nfsd, worker      |
//! | `release`        | release of exposed Replies                          | nfsd thread, workers  |
//! | `read_admission` | start, deferral and end of a Call's RDMA Reads      | nfsd thread, workers  |
//! | `post`           | posting, at once or when the Send Queue has room    | nfsd thread, workers  |
//! | `error`          | RDMA_ERROR to the client                            | nfsd thread           |
//! | `reply`          | Writes, header and payload of a Reply               | nfsd thread           |
//! | `backchannel`    | Calls to the client, and their Replies              | rpciod, nfsd thread   |
//! | `read_chunks`    | fetching of a Call's Read chunks, and reassembly    | nfsd thread           |
//! | `receive`        | received messages, and Calls whose Reads completed  | nfsd thread           |
//! | `handlers`       | callbacks of the endpoint                           | receive, send, CM     |
//! | `transport`      | calls from SUNRPC                                   | see `sunrpc::svc`     |
//!
//! Completion handlers run in one worker for Receives and one for Sends, concurrently, and take no
//! lock that is held across a sleep. Most other code runs in nfsd threads. Many threads may work on
//! a connection at a time, except in `receive` up to [`Arriving::clear_busy`].
//!
//! No lock is taken while another is held, except `ExposedReplies::state` and `InDoubt::list`
//! inside `Endpoint::exposing`. The locks are: `Requests::pending`, `ServerEp::incoming`,
//! `ExposedReplies::mapper`, `ExposedReplies::state`, `StallDetector::state`,
//! `SendBacklog::waiting`, `XprtTimer::deadline`, `Endpoint::held`, those in `Pool` and `InDoubt`,
//! and the lock in `SparePages`, which only the release of these pages waits for.
//!
//! [`Arriving::clear_busy`]: crate::sunrpc::svc::Arriving::clear_busy

#![forbid(unsafe_code)]

mod accept;
mod backchannel;
mod call;
mod connection;
mod counters;
mod ep;
mod error;
mod exposed;
mod handlers;
mod limits;
mod listener;
mod page_charge;
mod post;
mod read_admission;
mod read_chunks;
mod read_mrs;
mod read_throttle;
mod receive;
mod recv_queue;
mod release;
mod reply;
mod send_backlog;
mod stall;
mod state;
mod traces;
mod transport;
mod tunables;

use kernel::prelude::*;

use crate::sunrpc::svc;
use listener::Listener;

pub(crate) use tunables::register as register_tunables;

/// The registrations of the server.
///
/// C: svc_rdma.c, svc_rdma_init(), svc_rdma_cleanup()
pub(crate) struct Server {
    // Dropped in this order: connections create backchannel transports.
    _class: svc::ClassRegistration<Listener>,
    _backchannel: svc::BackchannelRegistration<Listener>,
}

impl Server {
    /// Registers the transport classes. The class of backchannel transports comes first: no such
    /// transport exists before the first connection.
    ///
    /// # Errors
    ///
    /// `EEXIST` if such a class is registered already.
    pub(crate) fn register(module: &'static ThisModule) -> Result<Self> {
        let backchannel = svc::BackchannelRegistration::new(module)?;
        Ok(Self {
            _class: svc::ClassRegistration::new(&backchannel, module)?,
            _backchannel: backchannel,
        })
    }
}
