// SPDX-License-Identifier: GPL-2.0

//! Connection setup: terms, queues and buffers, and the answer to the peer.
//!
//! C: svc_rdma_transport.c, svc_rdma_parse_connect_private(), svc_rdma_accept()

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

use super::{
    connection::{
        Connection,
        SharedSpare,
        Spare, //
    },
    ep::ServerEp,
    limits::{
        Limits,
        EXPOSED_SEGMENTS, //
    },
    read_mrs::ReadMrBudget,
    tunables, //
};
use crate::{
    engine::{
        agreement::{
            Agreement,
            Extensions,
            ReadDepths, //
        },
        responder::{
            reassembly::Bounds,
            reply::ReplyLimits, //
        }, //
    },
    lib::sync::Atomic,
    sunrpc::svc::{
        Accepting,
        NewXprt,
        SvcXprt, //
    },
    trace::trace,
    verbs::{
        ConnParam,
        DeviceAttrs,
        Endpoint,
        EndpointBox,
        MessageSizes,
        QueueDepths, //
    },
    wire::{
        extensions::{
            Announcement,
            Offer, //
        },
        private_data::PrivateData, //
    }, //
};

/// The most Read chunks in a Call, including Position Zero. Each costs a walk through the list.
const MAX_READ_CHUNKS: u32 = 32;

/// The least supported average length of Read segments: a page of a client with 4 KiB pages.
const MIN_SEGMENT: usize = 4096;

/// How often the client retransmits when it finds no Receive.
const RNR_RETRIES: u8 = 6;

/// A peer that asks for a connection.
pub(super) struct ConnectRequest {
    pub(super) endpoint: EndpointBox<ServerEp>,
    /// The peer's CM private data, if it is that of RFC 8797.
    pub(super) peer: Option<PrivateData>,
    /// The extensions beyond RFC 8166 that the peer supports.
    pub(super) offer: Offer,
    /// RDMA Reads that the peer can have outstanding.
    pub(super) peer_initiator_depth: u8,
    /// RDMA Reads that the peer can answer concurrently.
    pub(super) peer_responder_resources: u8,
}

/// The terms of a connection, before the peer is told.
struct Terms {
    limits: Limits,
    /// The extensions that this end offers: those that the peer supports and the device has
    /// resources for.
    offer: Offer,
    extensions: Extensions,
    /// RDMA Reads that this end can have outstanding.
    own_initiator_depth: u32,
    /// RDMA Reads that this end can answer concurrently.
    own_responder_resources: u32,
}

impl Terms {
    /// The terms that `device` allows for `request`.
    fn propose(device: &DeviceAttrs, request: &ConnectRequest) -> Result<Self> {
        let peer_initiator_depth = u32::from(request.peer_initiator_depth);
        let peer_responder_resources = u32::from(request.peer_responder_resources);
        let own_responder_resources = peer_initiator_depth.min(device.max_qp_rd_atom);
        let depths = ReadDepths {
            initiator_depth: peer_initiator_depth,
            responder_resources: own_responder_resources,
        };
        let able = Offer {
            pulled_replies: tunables::PULLED_REPLIES.get() != 0
                && device.mem_mgt_extensions
                && !device.refuses_local_inv
                && device.max_fast_reg_pages > 0,
        };
        let slots = if Extensions::between(&able, &request.offer, &depths).pulled_replies {
            tunables::MAX_EXPOSED_REPLIES.get()
        } else {
            0
        };
        let limits = Limits::for_device(device, slots)?;
        let offer = Offer {
            pulled_replies: limits.exposed_slots > 0,
        };
        let extensions = Extensions::between(&offer, &request.offer, &depths);
        Ok(Self {
            limits,
            offer,
            extensions,
            own_initiator_depth: peer_responder_resources.min(device.max_qp_init_rd_atom),
            own_responder_resources: if extensions.pulled_replies {
                own_responder_resources
            } else {
                0
            },
        })
    }

    /// Withdraws the offer to expose Replies.
    fn expose_none(&mut self) {
        self.limits.expose_none();
        self.offer = Offer::default();
        self.extensions = Extensions::default();
        self.own_responder_resources = 0;
    }

    /// This end's CM private data. Called after the Receive buffers are allocated, which may shrink
    /// messages.
    fn own(&self, device: &DeviceAttrs) -> PrivateData {
        PrivateData {
            remote_invalidation: device.mem_mgt_extensions
                && self.limits.invalidate
                && !device.registers_to_read,
            send_size: self.limits.send_size,
            receive_size: self.limits.receive_size,
        }
    }

    /// The CM's parameters.
    fn conn_param<'a>(&self, announcement: &'a Announcement) -> ConnParam<'a> {
        ConnParam {
            responder_resources: u8::try_from(self.own_responder_resources).unwrap_or(u8::MAX),
            initiator_depth: u8::try_from(self.own_initiator_depth).unwrap_or(u8::MAX),
            retry_count: 0,
            rnr_retry_count: RNR_RETRIES,
            private_data: announcement.as_bytes(),
        }
    }
}

/// The parts of a connection that is not installed yet.
struct Made {
    xprt: NewXprt<Connection>,
    /// Entries of the Send Queue that may be reserved.
    entries: u32,
    /// This end's CM private data.
    own: PrivateData,
    agreement: Agreement,
    read_mr_budget: ReadMrBudget,
}

/// Accepts a connection request. An error releases all resources and rejects the peer.
///
/// # Errors
///
/// `ENOMEM`, `EINVAL` if the device is not suitable, `ENODEV` if the connection has ended, and
/// those of the connection manager.
pub(super) fn accept(
    request: ConnectRequest,
    accepting: &Accepting<'_, Connection>,
    spare: Arc<Spare>,
) -> Result<SvcXprt<Connection>> {
    let ep = &request.endpoint;
    // The peer has timed out: do not create queues.
    if ep.context().is_gone() {
        return Err(ENODEV);
    }
    let device = supported_device(ep)?;
    let mut terms = Terms::propose(&device, &request)?;
    let peer = request.peer.unwrap_or_default();
    let made = make(ep, &device, accepting, &peer, &mut terms)?;
    let announcement = Announcement::new(&made.own, &terms.offer);
    let connection = install(request, made, &terms, spare);
    // From here on the peer may send.
    connection.ep.accept(&terms.conn_param(&announcement))?;
    Ok(connection)
}

/// Creates transport, queues and buffers, and posts Receives. If memory is short, `terms` shrink.
fn make(
    ep: &Endpoint<ServerEp>,
    device: &DeviceAttrs,
    accepting: &Accepting<'_, Connection>,
    peer: &PrivateData,
    terms: &mut Terms,
) -> Result<Made> {
    let mut xprt = accepting.new_connection()?;
    let local = ep.local_addr().ok_or(EINVAL)?;
    let remote = ep.peer_addr().ok_or(EINVAL)?;
    xprt.set_local(&local);
    xprt.set_remote(&remote);
    if local.ip() == remote.ip() {
        xprt.set_peer_is_local();
    }
    let opened = open_queues(ep, terms, device, xprt.max_payload())?;

    let ctx = ep.context();
    let recv_queue = &ctx.recv_queue;
    recv_queue.stock(ep, &mut terms.limits, |limits| {
        let send = limits.send_size.min(peer.receive_size);
        let sizes = message_sizes(send, limits, &opened);
        ep.sender().stock(ep, &sizes)
    })?;
    recv_queue.set_limits(&terms.limits);
    let own = terms.own(device);
    let agreement = Agreement::between(&own, peer);
    let read_mr_budget = open_ep(ep, &xprt, terms, &agreement, &opened, device)?;
    if recv_queue.fill(ep).is_err() || !ctx.attach(xprt.handle()) {
        return Err(ENODEV);
    }
    Ok(Made {
        xprt,
        entries: terms.limits.send_entries(&opened),
        own,
        agreement,
        read_mr_budget,
    })
}

/// Hands the connection to SUNRPC.
fn install(
    request: ConnectRequest,
    made: Made,
    terms: &Terms,
    spare: Arc<Spare>,
) -> SvcXprt<Connection> {
    let pages = made.xprt.max_call_pages();
    made.xprt.install(Connection {
        ep: request.endpoint,
        agreement: made.agreement,
        extensions: terms.extensions,
        reply_limits: ReplyLimits {
            threshold: made.agreement.send,
            // Linux clients before 4.14 refuse unused Reply chunks. Clients before 4.9 send no
            // private data; for the others there is a tunable.
            refuses_unused: request.peer.is_none() || tunables::SHORT_REPLIES.get() == 0,
            exposed_segments: if terms.extensions.pulled_replies {
                EXPOSED_SEGMENTS
            } else {
                0
            },
        },
        backchannel: terms.limits.backchannel,
        min_sq_entries: terms.limits.min_sq_entries(made.entries),
        bounds: bounds(pages, made.entries),
        read_mr_budget: made.read_mr_budget,
        may_read: terms.own_initiator_depth > 0,
        spare: SharedSpare::new(spare),
        displaces: Atomic::new(false),
    })
}

/// Limits on a Call with Read chunks, from the `pages` of a request and the `entries` of the Send
/// Queue.
fn bounds(pages: usize, entries: u32) -> Bounds {
    let message = pages * PAGE_SIZE;
    Bounds {
        // CAST: A service's messages are shorter than 2 GiB.
        message: message as u32,
        max_inline: PAGE_SIZE as u32,
        chunks: MAX_READ_CHUNKS,
        segments: entries.min((message / MIN_SEGMENT) as u32),
    }
}

/// The connection's device, if it supports kernel verbs.
fn supported_device(ep: &Endpoint<ServerEp>) -> Result<DeviceAttrs> {
    let device = ep.device()?;
    if !device.supported {
        trace!(svcrdma_fabric_err(
            ep.peer_addr(),
            EINVAL.to_errno() as isize
        ));
        return Err(EINVAL);
    }
    Ok(device)
}

/// Creates the queues, for READs and WRITEs of up to `payload` bytes; returns their depths. If the
/// device has no room to expose Replies in addition to one Call, none are exposed.
fn open_queues(
    ep: &Endpoint<ServerEp>,
    terms: &mut Terms,
    device: &DeviceAttrs,
    payload: u32,
) -> Result<QueueDepths> {
    let payload_pages = payload.div_ceil(PAGE_SIZE as u32);
    let rw_per_chunk = ep.rw_ctxts_for(payload_pages)?;
    let rw_ctxts = terms.limits.rw_ctxts(rw_per_chunk);
    let entries = ep.entries_for(rw_ctxts)?;
    let entries = terms.limits.rw_entries(entries, payload_pages, device);
    let mut depths = terms.limits.queue_depths(rw_ctxts, entries, device);
    loop {
        match ep.open(&depths) {
            // The maximum depth of a queue depends on the size of its entries, which only the
            // driver knows.
            Err(ENOMEM | EINVAL) if terms.limits.halve(&mut depths, rw_per_chunk) => {}
            Err(ENOMEM | EINVAL) if terms.limits.exposed_slots > 0 => {
                terms.expose_none();
                depths = terms.limits.queue_depths(rw_ctxts, entries, device);
            }
            Err(error) => {
                trace!(svcrdma_qp_err(ep.peer_addr(), error.to_errno() as isize));
                return Err(error);
            }
            opened => return opened,
        }
    }
}

/// Sizes of a Send of up to `send` bytes.
fn message_sizes(send: u32, limits: &Limits, opened: &QueueDepths) -> MessageSizes {
    MessageSizes {
        buffer: send as usize,
        sges: opened.send_sge.min(limits.sges),
    }
}

/// Prepares the endpoint for the agreed terms, before the first Receive is posted. Returns the
/// budget of MRs for RDMA Reads.
fn open_ep(
    ep: &Endpoint<ServerEp>,
    xprt: &NewXprt<Connection>,
    terms: &Terms,
    agreement: &Agreement,
    opened: &QueueDepths,
    device: &DeviceAttrs,
) -> Result<ReadMrBudget> {
    let ctx = ep.context();
    let limits = &terms.limits;
    let pages = xprt.max_pages();
    let entries = limits.send_entries(opened);
    ep.sender().open(
        message_sizes(agreement.send, limits, opened),
        entries,
        limits.unadmitted_entries(entries),
    );
    ctx.send_backlog.open(limits.max_waiting());
    let mrs = if device.reads_need_mrs() {
        opened.rdma_ctxs
    } else {
        0
    };
    let read_mr_budget = ReadMrBudget::new(mrs, device.rw_mr_pages());
    ctx.incoming
        .lock()
        .read_backlog
        .open(read_mr_budget.total());
    if terms.extensions.pulled_replies {
        let mr_pages = u32::try_from(pages)?.min(device.max_fast_reg_pages);
        ctx.exposed
            .open(ep, limits.exposed_slots, mr_pages, device.sg_gaps)?;
    }
    Ok(read_mr_budget)
}
