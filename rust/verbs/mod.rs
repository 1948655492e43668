// SPDX-License-Identifier: GPL-2.0

//! RDMA as types: devices, queue pairs, buffers and memory regions.
//!
//! What is posted belongs to the device until its completion gives it back: a posted buffer cannot
//! be read, because nobody holds it. Pages of an RPC are not owned here: see the promises in
//! `Documentation/architecture.rst`. Whatever the device can reach keeps a
//! [`Domain`](domain::Domain), or ends with it, and the device's removal waits for the last domain.
//!
//! | file                               | what                                                 |
//! |------------------------------------|------------------------------------------------------|
//! | `endpoint`                         | one end of a connection: identifier, queues, context |
//! | `context`, `events`                | what handles its reports, and how they come there    |
//! | `identifier`                       | what the connection manager is asked for             |
//! | `cm`                               | what it reports and is told                          |
//! | `listener`                         | listening, also when the address moves               |
//! | `device`, `domain`                 | leases on devices, protection domains                |
//! | `sizes`                            | what a device can do, and what is asked of it        |
//! | `queues`                           | a queue pair and its completion queues               |
//! | `completion`                       | the workers of completion queues, and how work ended |
//! | `dma`                              | buffers that stay mapped                             |
//! | `recv`, `recv_buffer`              | Receive buffers, and posting them; their memory      |
//! | `requester`, `send_ring`           | the sending side of a client                         |
//! | `responder`, `send_queue`          | the sending side of a server                         |
//! | `message`, `message_post`          | a server's messages                                  |
//! | `aside`                            | short messages that completion handlers send         |
//! | `transfer`, `transfers`            | an RDMA Read or Write, and chains of them            |
//! | `call_pull`, `reply_pull`          | Reads that pull a Call, and a Reply                  |
//! | `region`, `regions`                | memory regions and their states                      |
//! | `scatter_list`                     | the memory that a region covers                      |
//! | `region_pool`, `registrar`         | the idle ones, and mapping memory with them          |
//! | `keys`                             | what tells one life of a region from the others      |
//! | `refill`, `handles`                | more regions; for which Call a handle was given out  |
//! | `expose`, `fence`                  | exposing memory, and the proof that it is over       |
//! | `linked_box`, `patience`           | tools: boxes for lists, asking for memory            |

mod aside;
mod call_pull;
mod cm;
mod completion;
mod context;
mod device;
mod dma;
mod domain;
mod endpoint;
mod events;
mod expose;
mod fence;
mod handles;
mod identifier;
mod keys;
mod linked_box;
mod listener;
mod message;
mod message_post;
mod not_taken;
mod patience;
mod queues;
mod recv;
mod recv_buffer;
mod refill;
mod region;
mod region_pool;
mod regions;
mod registrar;
mod reply_pull;
mod requester;
mod responder;
mod scatter_list;
mod send_queue;
mod send_ring;
mod sizes;
mod transfer;
mod transfers;

pub(crate) use crate::bindings::{
    addr::SockAddr,
    list::{
        Queue,
        Stack, //
    },
    noted_pages::CallPages,
    pages::{
        PageArray,
        Span, //
    },
    pool::Pool, //
};
pub(crate) use aside::Asides;
pub(crate) use call_pull::{
    Parcel,
    Pull,
    Pulled,
    Reads, //
};
pub(crate) use cm::{
    CmEvent,
    ConnParam,
    IncomingConnection, //
};
pub(crate) use completion::{
    Ended,
    RecvWorker,
    SendWorker, //
};
pub(crate) use context::Context;
pub(crate) use device::DeviceWatch;
pub(crate) use endpoint::{
    Drained,
    Endpoint,
    EndpointBox, //
};
pub(crate) use expose::Exposes;
pub(crate) use fence::{
    Fenced,
    QueueEnded, //
};
pub(crate) use listener::{
    Accepts,
    Listening, //
};
pub(crate) use message::{
    Message,
    Sent, //
};
pub(crate) use recv::{
    Recv,
    RecvBatch,
    RecvStatus, //
};
pub(crate) use refill::{
    Refill,
    RegionWaiter, //
};
pub(crate) use region::{
    Access,
    Exposed,
    MapError, //
};
pub(crate) use regions::{
    Mapped,
    Regions,
    Registered, //
};
pub(crate) use registrar::Registrar;
pub(crate) use reply_pull::{
    NotPulled,
    Prepared,
    Puller,
    ReplyPulls, //
};
pub(crate) use requester::{
    Draft,
    DraftFull,
    Requester,
    Sender, //
};
pub(crate) use responder::{
    Responder,
    Sending, //
};
pub(crate) use send_queue::{
    NotPosted,
    Permit,
    ReserveError,
    SendQueue, //
};
pub(crate) use sizes::{
    DeviceAttrs,
    MessageSizes,
    QueueDepths,
    SenderSizes, //
};
pub(crate) use transfer::Remote;
