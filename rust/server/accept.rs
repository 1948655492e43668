// SPDX-License-Identifier: GPL-2.0

//! Making a connection: what it is to be like, its queues and buffers, the answer to the peer.

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::atomic::Atomic, //
};

use super::{
    connection::{
        Connection,
        Spare, //
    },
    ep::ServerEp,
    limits::{
        Limits,
        EXPOSED_SEGMENTS, //
    },
    listener::ConnectRequest,
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
        MessageSizes,
        QueueDepths,
        Responder, //
    },
    wire::{
        extensions::{
            Announcement,
            Offer, //
        },
        private_data::PrivateData, //
    }, //
};

/// Read chunks of one Call, a Position-zero chunk included. Each costs a walk through the list.
const MAX_READ_CHUNKS: u32 = 32;

/// Bytes of a segment at least, on the whole: a page of a client whose pages are small.
const SEGMENT: usize = 4096;

/// Times that the client tries again when it finds no Receive.
const RNR_RETRIES: u8 = 6;

/// What a connection is to be like, before the peer is told.
struct Terms {
    limits: Limits,
    /// What this end offers beyond RFC 8166: only what the peer has asked for and there is room
    /// for.
    offer: Offer,
    /// What follows from that.
    extensions: Extensions,
    /// RDMA Reads that this end starts at a time.
    own_initiator_depth: u32,
    /// RDMA Reads of the peer that this end answers at a time.
    own_responder_resources: u32,
}

impl Terms {
    /// What `device` can do for a peer that asks for this.
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
                && device.max_fast_reg_pages > 0,
        };
        let places = if Extensions::between(&able, &request.offer, &depths).pulled_replies {
            tunables::MAX_EXPOSED_REPLIES.get()
        } else {
            0
        };
        let limits = Limits::new(device, places)?;
        let offer = Offer {
            pulled_replies: limits.places > 0,
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

    /// Exposes no Replies after all.
    fn expose_none(&mut self) {
        self.limits.expose_none();
        self.offer = Offer::default();
        self.extensions = Extensions::default();
        self.own_responder_resources = 0;
    }

    /// What this end says about itself. To be asked when the Receive buffers are made, since that
    /// may make messages smaller.
    fn own(&self, device: &DeviceAttrs) -> PrivateData {
        PrivateData {
            remote_invalidation: device.mem_mgt_extensions
                && self.limits.invalidate
                && !device.registers_to_read,
            send_size: self.limits.send,
            receive_size: self.limits.receive,
        }
    }

    /// What the connection manager is told.
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

/// What a connection has before there is one.
struct Made {
    xprt: NewXprt<Connection>,
    /// Entries of the Send Queue that may be reserved.
    entries: u32,
    /// What this end says about itself.
    own: PrivateData,
    agreement: Agreement,
    read_mr_budget: ReadMrBudget,
}

impl Connection {
    /// Accepts a peer. What was made is dropped again if anything fails, and the peer refused.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the device is not good enough, `ENODEV` if the connection is at its
    /// end, and others from the connection manager.
    pub(super) fn accept(
        request: ConnectRequest,
        accepting: &Accepting<'_, Connection>,
        spare: Spare,
    ) -> Result<SvcXprt<Self>> {
        let ep = &request.endpoint;
        // A peer that has waited too long is not worth the queues.
        if ep.context().is_gone() {
            return Err(ENODEV);
        }
        let device = serviceable(ep)?;
        let mut terms = Terms::propose(&device, &request)?;
        let peer = request.peer.unwrap_or_default();
        let made = make(ep, &device, accepting, &peer, &mut terms)?;
        let announcement = Announcement::new(&made.own, &terms.offer);
        let connection = install(request, made, &terms, spare);
        // From here on the peer may send.
        connection.ep.accept(&terms.conn_param(&announcement))?;
        Ok(connection)
    }
}

/// Makes transport, queues and buffers, and posts Receives. Where memory is short, `terms` become
/// less.
fn make(
    ep: &Endpoint<ServerEp>,
    device: &DeviceAttrs,
    accepting: &Accepting<'_, Connection>,
    peer: &PrivateData,
    terms: &mut Terms,
) -> Result<Made> {
    let mut xprt = accepting.new_connection()?;
    xprt.set_local(&ep.local_addr().ok_or(EINVAL)?);
    xprt.set_remote(&ep.peer_addr().ok_or(EINVAL)?);
    let opened = open_queues(ep, terms, device, xprt.max_payload())?;

    let pages = xprt.max_pages();
    let ctx = ep.context();
    let receives = ctx.receives();
    receives.stock(ep, &mut terms.limits, pages, |limits| {
        let send = limits.send.min(peer.receive_size);
        let sizes = message_sizes(send, limits, &opened, pages);
        ctx.sending().stock(ep, &sizes)
    })?;
    receives.set_limits(&terms.limits);
    let own = terms.own(device);
    let agreement = Agreement::between(&own, peer);
    let read_mr_budget = open_channel(ep, &xprt, terms, &agreement, &opened, device)?;
    if !receives.refill(ep, 0) || !ctx.attach(xprt.handle()) {
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

/// Gives SUNRPC the connection.
fn install(
    request: ConnectRequest,
    made: Made,
    terms: &Terms,
    spare: Spare,
) -> SvcXprt<Connection> {
    let pages = made.xprt.max_pages();
    made.xprt.install(Connection {
        ep: request.endpoint,
        agreement: made.agreement,
        extensions: terms.extensions,
        reply_limits: ReplyLimits {
            threshold: made.agreement.send,
            // Linux did so before 4.14. Before 4.9 it said nothing about itself; of the others only
            // the administrator knows.
            refuses_unused: request.peer.is_none() || tunables::SHORT_REPLIES.get() == 0,
            exposed_segments: if terms.extensions.pulled_replies {
                EXPOSED_SEGMENTS
            } else {
                0
            },
        },
        credits: terms.limits.credits,
        backchannel: terms.limits.backchannel,
        share: terms.limits.share(made.entries),
        bounds: bounds(pages, made.entries),
        read_mr_budget: made.read_mr_budget,
        may_read: terms.own_initiator_depth > 0,
        spare,
        displaces: Atomic::new(false),
    })
}

/// What a Call with Read chunks is limited to, by the `pages` of a request and the `entries` of the
/// Send Queue.
fn bounds(pages: usize, entries: u32) -> Bounds {
    let message = pages * PAGE_SIZE;
    Bounds {
        // CAST: A service's messages are shorter than 2 GiB.
        message: message as u32,
        max_inline: PAGE_SIZE as u32,
        chunks: MAX_READ_CHUNKS,
        segments: entries.min((message / SEGMENT) as u32),
    }
}

/// The connection's device, if the kernel can use it.
fn serviceable(ep: &Endpoint<ServerEp>) -> Result<DeviceAttrs> {
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

/// Makes the queues, for READs and WRITEs of up to `payload` bytes; returns how deep they are.
/// Those of a device that has no room to expose Replies beside a Call expose none.
fn open_queues(
    ep: &Endpoint<ServerEp>,
    terms: &mut Terms,
    device: &DeviceAttrs,
    payload: u32,
) -> Result<QueueDepths> {
    let payload_pages = payload.div_ceil(PAGE_SIZE as u32);
    let each = ep.rw_ctxts_for(payload_pages)?;
    let transfers = terms.limits.transfers(each);
    let entries = ep.entries_for(transfers)?;
    let mut depths = terms.limits.depths(transfers, entries, device);
    loop {
        match ep.open(&depths) {
            // How deep a queue can be depends on how large its entries are, too, and how that is,
            // only the device knows.
            Err(ENOMEM | EINVAL) if terms.limits.halve(&mut depths, each) => {}
            Err(ENOMEM | EINVAL) if terms.limits.places > 0 => {
                terms.expose_none();
                depths = terms.limits.depths(transfers, entries, device);
            }
            Err(error) => {
                trace!(svcrdma_qp_err(ep.peer_addr(), error.to_errno() as isize));
                return Err(error);
            }
            opened => return opened,
        }
    }
}

/// Sizes of a message of up to `send` bytes, or of so many pages.
fn message_sizes(send: u32, limits: &Limits, opened: &QueueDepths, pages: usize) -> MessageSizes {
    MessageSizes {
        buffer: send as usize,
        pages,
        sges: opened.send_sge.min(limits.elements),
    }
}

/// Makes the channel ready for what was agreed on, before the first Receive is posted; returns how
/// Reads use regions.
fn open_channel(
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
    ctx.sending().open(
        message_sizes(agreement.send, limits, opened, pages),
        limits.send_entries(opened),
    );
    let mrs = if device.registers_to_read {
        opened.rdma_ctxs
    } else {
        0
    };
    let read_mr_budget = ReadMrBudget::new(mrs, device.max_fast_reg_pages);
    ctx.incoming()
        .lock()
        .read_backlog
        .open(read_mr_budget.total());
    if terms.extensions.pulled_replies {
        let most = u32::try_from(pages)?.min(device.max_fast_reg_pages);
        ctx.exposed()
            .open(ep, limits.places, most, device.sg_gaps)?;
    }
    Ok(read_mr_budget)
}
