// SPDX-License-Identifier: GPL-2.0

//! RDMA verbs and the connection manager as safe types, for the client and the server.
//!
//! Each of the six wings may use the wings to its left:
//!
//! ```text
//! device <- endpoint <- { mr, rw } <- { requester, responder }
//! ```
//!
//! | wing        | what                                                               |
//! |-------------|--------------------------------------------------------------------|
//! | `device`    | devices, protection domains, DMA buffers, queues                   |
//! | `endpoint`  | one end of a connection: cm_id, queues, and their events           |
//! | `mr`        | memory regions: registration, and proofs of their invalidation     |
//! | `rw`        | RDMA Read and RDMA Write                                           |
//! | `requester` | the sending side of a client                                       |
//! | `responder` | the sending side of a server                                       |
//!
//! The device owns a posted buffer until the completion returns it, so no code can read a posted
//! buffer. This room does not own the pages of an RPC: `Documentation/architecture.rst` lists the
//! rules that protect them. Each object that the device can access holds a reference to its
//! protection domain, or is released with the domain. Device removal waits for the last domain.

mod device;
mod endpoint;
mod mr;
mod requester;
mod responder;
mod rw;

pub(crate) use device::{
    attrs::{
        DeviceAttrs,
        MessageSizes,
        QueueDepths,
        SenderSizes, //
    },
    ib_client::IbClient, //
};

pub(crate) use endpoint::{
    cm_event::{
        CmEvent,
        ConnParam,
        IncomingConnection, //
    },
    completion::{
        RecvWorker,
        SendWorker, //
    },
    ep::{
        Drained,
        Endpoint,
        EndpointBox, //
    },
    invalidated::Invalidated,
    listener::{
        ListenerOps,
        Listening, //
    },
    ops::EndpointOps,
    recv_ctxt::{
        RecvBatch,
        RecvBuf,
        RecvBufMut,
        RecvStatus, //
    },
    send_queue::{
        Permit,
        PostError,
        SendQueue, //
    },
    wc::WcStatus, //
};

pub(crate) use mr::{
    exposes::{
        Exposes,
        Waiting, //
    },
    frwr::{
        Access,
        MapError, //
    },
    ib_mr::Exposed,
    mapper::MrMapper,
    mr_list::{
        Mapped,
        MrList,
        Registered, //
    },
    refresh::{
        MrRefresh,
        MrWaiter, //
    }, //
};

pub(crate) use requester::{
    ctrl_send::{
        CtrlPost,
        CtrlSendPool, //
    },
    reply_read::{
        ReadNotPosted,
        ReadTarget,
        ReplyReader,
        ReplyReads, //
    },
    sendctx_ring::SendFull,
    sender::{
        RequestSender,
        Requester,
        SendBuilder, //
    }, //
};

pub(crate) use responder::{
    call_read::{
        CallRead,
        CallReadDone,
        Reads,
        RecvCtxt, //
    },
    expose::{
        ExposedPages,
        ExposingSendCtxt,
        Exposure,
        ExposureWaiter,
        SentExposing, //
    },
    send_ctxt::{
        SendCtxt,
        Sent, //
    },
    sender::{
        ReplySender,
        Responder, //
    }, //
};

pub(crate) use rw::{
    remote::Remote,
    rw_ctxt::{
        RwCtxtPool,
        RwOps, //
    }, //
};
