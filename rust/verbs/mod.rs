// SPDX-License-Identifier: GPL-2.0

//! RDMA as types: devices, queue pairs, buffers and memory regions.
//!
//! What is posted belongs to the device until its completion gives it back: a posted buffer cannot
//! be read, because nobody holds it. Pages of an RPC are not owned here: see the promises in
//! `Documentation/architecture.rst`. Whatever the device can reach keeps a
//! [`Pd`](domain::Domain), or ends with it, and the device's removal waits for the last domain.
//!
//! | file                               | what                                                 |
//! |------------------------------------|------------------------------------------------------|
//! | `endpoint`                         | one end of a connection: identifier, queues, context |
//! | `context`, `events`                | what handles its reports, and how they come there    |
//! | `identifier`                       | what the connection manager is asked for             |
//! | `cm`                               | what it reports and is told                          |
//! | `listener`                         | listening, also when the address moves               |
//! | `device`, `pd`                 | leases on devices, protection domains                |
//! | `sizes`                            | what a device can do, and what is asked of it        |
//! | `queues`                           | a queue pair and its completion queues               |
//! | `completion`                       | the workers of completion queues, and how work ended |
//! | `dma`                              | buffers that stay mapped                             |
//! | `recv`, `recv_buffer`              | Receive buffers, and posting them; their memory      |
//! | `requester`, `send_ring`           | the sending side of a client                         |
//! | `responder`, `send_queue`          | the sending side of a server                         |
//! | `message`, `message_post`          | a server's messages                                  |
//! | `ctrl_send`                            | short messages that completion handlers send         |
//! | `rw_ctxt`, `rw_chain`            | an RDMA Read or Write, and chains of them            |
//! | `call_pull`, `reply_pull`          | Reads that pull a Call, and a Reply                  |
//! | `mr`, `mrs`                | memory regions and their states                      |
//! | `scatter_list`                     | the memory that a region covers                      |
//! | `mr_pool`, `mr_mapper`         | the idle ones, and mapping memory with them          |
//! | `rkeys`                             | what tells one life of a region from the others      |
//! | `refill`, `handles`                | more regions; for which Call a handle was given out  |
//! | `expose`, `fence`                  | exposing memory, and the proof that it is over       |
//! | `linked_box`, `patience`           | tools: boxes for lists, asking for memory            |

mod device;
mod endpoint;
mod mr;
mod requester;
mod responder;
mod rw;

pub(crate) use device::attrs::{
    DeviceAttrs,
    MessageSizes,
    QueueDepths,
    SenderSizes, //
};
pub(crate) use device::ib_client::IbClient;
pub(crate) use endpoint::cm_event::{
    CmEvent,
    ConnParam,
    IncomingConnection, //
};
pub(crate) use endpoint::completion::{
    RecvWorker,
    SendWorker, //
    WcStatus,
};
pub(crate) use endpoint::ep::{
    Drained,
    Endpoint,
    EndpointBox, //
};
pub(crate) use endpoint::invalidated::Invalidated;
pub(crate) use endpoint::listener::{
    Accepts,
    Listening, //
};
pub(crate) use endpoint::ops::EndpointOps;
pub(crate) use endpoint::recv_ctxt::{
    RecvBatch,
    RecvBuf,
    RecvStatus, //
};
pub(crate) use endpoint::send_queue::{
    Permit,
    PostError,
    ReserveError,
    SendQueue, //
};
pub(crate) use mr::exposes::{
    Exposes,
    Waiting, //
};
pub(crate) use mr::frwr::{
    Access,
    MapError, //
};
pub(crate) use mr::mapper::MrMapper;
pub(crate) use mr::mr_alloc::Exposed;
pub(crate) use mr::mr_list::{
    Mapped,
    MrList,
    Registered, //
};
pub(crate) use mr::refresh::{
    MrRefresh,
    MrWaiter, //
};
pub(crate) use requester::ctrl_send::CtrlSendPool;
pub(crate) use requester::reply_read::{
    PreparedReads,
    ReadNotPosted,
    ReplyReader,
    ReplyReads, //
};
pub(crate) use requester::sendctx_ring::SendFull;
pub(crate) use requester::sender::{
    RequestSender,
    Requester,
    SendBuilder, //
};
pub(crate) use responder::call_read::{
    CallRead,
    CallReadDone,
    Reads, //
    RecvCtxt,
};
pub(crate) use responder::expose::{
    ExposedPages,
    Exposure,
    ExposureWaiter, //
};
pub(crate) use responder::send_ctxt::{
    SendCtxt,
    Sent, //
};
pub(crate) use responder::sender::{
    ReplySender, //
    Responder,
};
pub(crate) use rw::rw_ctxt::Remote;
