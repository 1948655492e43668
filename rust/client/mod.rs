// SPDX-License-Identifier: GPL-2.0

//! The connecting end: connect, send, reply, memory registration.
//!
//! C: transport.c, xprt_rdma_init(), xprt_rdma_cleanup()
//!
//! A file uses only the files above it in this table.
//!
//! | file              | what                                                | runs in                  |
//! |-------------------|-----------------------------------------------------|--------------------------|
//! | `tunables`        | sysctl files under `/proc/sys/sunrpc`               | any task                 |
//! | `limits`          | queue depths and message sizes that a device allows | connect worker           |
//! | `connect_failure` | why an attempt to connect has failed                | any                      |
//! | `report`          | lines of the kernel log for administrators          | connect, receive worker  |
//! | `stats`           | counters of a transport for `mountstats`            | any                      |
//! | `link_history`    | what has happened to a transport's connections      | any                      |
//! | `reply_history`   | prediction, per procedure, of long Replies          | RPC task, receive worker |
//! | `stall`           | detection of Reads that the server stalls           | receive and send worker  |
//! | `recv_queue`      | Receive Queue and its buffers                       | receive worker           |
//! | `shared`          | state of a transport that outlives its connections  | any                      |
//! | `answer`          | answered RPCs whose memory is not fenced yet        | receive and send worker  |
//! | `inflight`        | memory that an outstanding Call exposes             | RPC task, receive worker |
//! | `ctrl_queue`      | RDMA_ERRORs and RDMA_DONEs, sent or queued          | receive and send worker  |
//! | `dones`           | Replies that are fetched, and their RDMA_DONEs      | receive and send worker  |
//! | `connect_wait`    | wait of the connect worker for CM events            | connect worker, CM       |
//! | `ep`              | state of one connection                             | any                      |
//! | `state`           | text of a transport's file                          | a task that reads it     |
//! | `traces`          | trace events with more than one argument to compute | any                      |
//! | `connect`         | connection setup                                    | connect worker           |
//! | `compose`         | chunks, header and payload of a Call                | RPC task                 |
//! | `send`            | choosing how a Call travels, and posting it         | RPC task                 |
//! | `complete`        | fencing of an answered RPC's memory, and wakeup     | receive and send worker  |
//! | `reply_read`      | fetching of a Reply by RDMA Read                    | receive and send worker  |
//! | `error`           | RDMA_ERROR to the server                            | receive worker           |
//! | `backchannel`     | Calls of the server, and their Replies              | receive worker, RPC task |
//! | `reply`           | received messages, and the RPCs that they answer    | receive worker           |
//! | `handlers`        | callbacks of the endpoint                           | receive, send, CM worker |
//! | `transport`       | calls from SUNRPC                                   | see `sunrpc::xprt::ops`  |
//!
//! Connecting, sending and disconnecting require the send lock (`XPRT_LOCKED`). One worker for
//! Receives, one for Sends, and the CM's event handlers run concurrently with the lock holder.
//! Locks nest in this order:
//!
//! * `XprtState::link`, then either the locks taken to end a connection, or `Endpoint::exposing`
//!   when a task abandons an RPC and waits for its LOCAL_INVs;
//! * `CtrlQueue::waiting`, then `Pool::free` or `InDoubt::list`: a queued message takes an idle
//!   control Send, whose post may fail.
//!
//! No lock is taken inside `ConnectWait::state`, `StallDetector::reads` or `Endpoint::exposing`.

#![forbid(unsafe_code)]

mod answer;
mod backchannel;
mod complete;
mod compose;
mod connect;
mod connect_failure;
mod connect_wait;
mod ctrl_queue;
mod dones;
mod ep;
mod error;
mod handlers;
mod inflight;
mod limits;
mod link_history;
mod recv_queue;
mod reply;
mod reply_history;
mod reply_read;
mod report;
mod send;
mod shared;
mod stall;
mod state;
mod stats;
mod traces;
mod transport;
mod tunables;

use kernel::prelude::*;

use crate::sunrpc::xprt::ClassRegistration;

pub(crate) use tunables::register as register_tunables;

/// The registration of the client.
pub(crate) struct Client {
    _class: ClassRegistration<shared::RdmaXprt>,
}

impl Client {
    /// Registers the transport class.
    ///
    /// # Errors
    ///
    /// `EEXIST` if such a class is registered already.
    pub(crate) fn register(module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            _class: ClassRegistration::new(module)?,
        })
    }
}
