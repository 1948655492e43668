// SPDX-License-Identifier: GPL-2.0

//! A connection as SUNRPC sees it: made, used by many threads, closed.

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    }, //
};

use crate::{
    admin::{
        self,
        trace::trace, //
    },
    engine::{
        agreement::{
            Agreement,
            Extensions,
            ReadDepths, //
        }, //
        assembly::Bounds,
    },
    sunrpc::{
        svc::{
            self,
            Accepting,
            Arriving,
            CallError,
            NewXprt,
            Received,
            Reply,
            ReverseLimits,
            SparePages,
            SvcXprt, //
        },
        xdr::XdrBuf, //
    },
    verbs::{
        ConnParam,
        DeviceAttrs,
        Endpoint,
        EndpointBox,
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

use super::{
    call::Buffer,
    channel::Channel,
    limits::{
        Limits,
        EXPOSED_SEGMENTS, //
    },
    listener::{
        Listener,
        Pending, //
    },
    regions::Demand, //
};

/// Read chunks of one Call, a Position-zero chunk included. Each costs a walk through the list.
const MAX_READ_CHUNKS: u32 = 32;

/// Octets of a segment at least, on the whole: a page of a client whose pages are small.
const SEGMENT: usize = 4096;

/// Times that the client tries again when it finds no Receive.
const RNR_RETRIES: u8 = 6;

/// A transport that is connected.
pub(super) struct Connection {
    pub(super) ep: EndpointBox<Channel>,
    /// What may be sent, and how.
    pub(super) agreement: Agreement,
    /// Extensions beyond RFC 8166 that were agreed on.
    pub(super) extensions: Extensions,
    /// Whether the client may refuse a Reply chunk that it gets back unused, as Linux before 4.14.
    pub(super) refuses_unused: bool,
    /// What every message grants.
    pub(super) credits: u32,
    /// Reverse Calls that may be outstanding.
    pub(super) reverse: u32,
    /// Entries of the Send Queue that a message takes at least.
    pub(super) share: u32,
    /// What may be pulled for one Call.
    pub(super) bounds: Bounds,
    /// iWARP regions that pulling takes.
    pub(super) demand: Demand,
    /// Whether the client answers RDMA Reads.
    pub(super) may_read: bool,
    /// Pages for those that travel with messages.
    pub(super) spare: Spare,
    /// Whether a file's pages have displaced those of the last Reply that was asked for any.
    pub(super) displaces: Atomic<bool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.spare.calls.release();
        self.spare.replies.release();
    }
}

/// Pages that were displaced in a request of any connection of a listener.
#[derive(Clone)]
pub(super) struct Spare {
    /// By those that a Call was pulled to.
    pub(super) calls: Arc<SparePages>,
    /// By those of a file that is read. Nothing was written to these.
    pub(super) replies: Arc<SparePages>,
}

impl Spare {
    /// None so far.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            calls: SparePages::new()?,
            replies: SparePages::new()?,
        })
    }
}

/// What a connection is to be like, before the peer is told.
struct Terms {
    limits: Limits,
    /// What this end offers beyond RFC 8166: only what the peer has asked for and there is room
    /// for.
    offer: Offer,
    /// What follows from that.
    extensions: Extensions,
    /// RDMA Reads of the peer that this end answers at a time.
    answered: u32,
}

impl Terms {
    /// What `device` can do for a peer that offers `theirs` and starts `pulls` RDMA Reads at a
    /// time.
    fn propose(device: &DeviceAttrs, theirs: &Offer, pulls: u8) -> Result<Self> {
        let answered = u32::from(pulls).min(device.max_qp_rd_atom);
        let depths = ReadDepths {
            requester: u32::from(pulls),
            responder: answered,
        };
        let able = Offer {
            pulled_replies: admin::server::PULLED_REPLIES.get() != 0
                && device.mem_mgt_extensions
                && device.max_fast_reg_pages > 0,
        };
        let places = if Extensions::between(&able, theirs, &depths).pulled_replies {
            admin::server::MAX_EXPOSED_REPLIES.get()
        } else {
            0
        };
        let limits = Limits::new(device, places)?;
        let offer = Offer {
            pulled_replies: limits.places > 0,
        };
        Ok(Self {
            limits,
            offer,
            extensions: Extensions::between(&offer, theirs, &depths),
            answered,
        })
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
}

impl Connection {
    /// Accepts a peer. What was made is dropped again if anything fails, and the peer refused.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the device is not good enough, `ENODEV` if the connection is at its
    /// end, and others from the connection manager.
    pub(super) fn accept(
        pending: Pending,
        accepting: &Accepting<'_, Listener>,
        spare: Spare,
    ) -> Result<SvcXprt<Self>> {
        let Pending {
            endpoint: ep,
            peer,
            offer,
            reads,
            pulls,
        } = pending;
        // A peer that has waited too long is not worth the queues.
        if ep.context().is_gone() {
            return Err(ENODEV);
        }
        let device = serviceable(&ep)?;
        let mut terms = Terms::propose(&device, &offer, pulls)?;
        let mut xprt = accepting.new_connection()?;
        xprt.set_local(&ep.local_addr().ok_or(EINVAL)?);
        xprt.set_remote(&ep.peer_addr().ok_or(EINVAL)?);
        let handle = xprt.handle();
        let opened = open_queues(&ep, &terms.limits, &device, xprt.max_payload())?;

        let pages = xprt.max_pages();
        let theirs = peer.unwrap_or_default();
        let receives = ep.context().receives();
        receives.stock(&ep, &mut terms.limits, pages, |limits| {
            let send = limits.send.min(theirs.receive_size);
            let sizes = message_sizes(send, limits, &opened, pages);
            ep.context().sending().stock(&ep, &sizes)
        })?;
        receives.set_limits(&terms.limits);
        let own = terms.own(&device);
        let agreement = Agreement::between(&own, &theirs);
        let demand = open_channel(&ep, &xprt, &terms, &agreement, &opened, &device)?;
        if !receives.refill(&ep, 0) || !ep.context().attach(handle) {
            return Err(ENODEV);
        }

        let Terms {
            limits,
            offer,
            extensions,
            answered,
        } = terms;
        let reads = u32::from(reads).min(device.max_qp_init_rd_atom);
        let connection = xprt.install(Self {
            ep,
            agreement,
            extensions,
            // Before 4.9 Linux said nothing about itself; of the others only the administrator
            // knows.
            refuses_unused: peer.is_none() || admin::server::SHORT_REPLIES.get() == 0,
            credits: limits.credits,
            reverse: limits.reverse,
            share: limits.share(limits.send_entries(&opened)),
            bounds: bounds(pages, limits.send_entries(&opened)),
            demand,
            may_read: reads > 0,
            spare,
            displaces: Atomic::new(false),
        });
        let announcement = Announcement::new(&own, &offer);
        let answers = if extensions.pulled_replies {
            answered
        } else {
            0
        };
        // From here on the peer may send.
        connection
            .ep
            .accept(&conn_param(answers, reads, &announcement))?;
        Ok(connection)
    }
}

/// What a Call with Read chunks is limited to, by the `pages` of a request and the `entries` of the
/// Send Queue.
fn bounds(pages: usize, entries: u32) -> Bounds {
    let message = pages * PAGE_SIZE;
    Bounds {
        // CAST: A service's messages are shorter than 2 GiB.
        message: message as u32,
        in_place: PAGE_SIZE as u32,
        chunks: MAX_READ_CHUNKS,
        segments: entries.min((message / SEGMENT) as u32),
    }
}

/// What the connection manager is told: how many RDMA Reads this end answers at a time, and starts.
fn conn_param(answers: u32, starts: u32, announcement: &Announcement) -> ConnParam<'_> {
    ConnParam {
        responder_resources: u8::try_from(answers).unwrap_or(u8::MAX),
        initiator_depth: u8::try_from(starts).unwrap_or(u8::MAX),
        retry_count: 0,
        rnr_retry_count: RNR_RETRIES,
        private_data: announcement.as_octets(),
    }
}

/// The connection's device, if the kernel can use it.
fn serviceable(ep: &Endpoint<Channel>) -> Result<DeviceAttrs> {
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

/// Makes the queues, for READs and WRITEs of up to `payload` octets; returns how deep they are.
fn open_queues(
    ep: &Endpoint<Channel>,
    limits: &Limits,
    device: &DeviceAttrs,
    payload: u32,
) -> Result<QueueDepths> {
    let payload_pages = payload.div_ceil(PAGE_SIZE as u32);
    let each = ep.transfers_for(payload_pages)?;
    let transfers = limits.transfers(each);
    let entries = ep.entries_for(transfers)?;
    let mut depths = limits.depths(transfers, entries, device);
    loop {
        match ep.open(&depths) {
            // How deep a queue can be depends on how large its entries are, too, and how that is,
            // only the device knows.
            Err(ENOMEM | EINVAL) if Limits::halve(&mut depths, each) => {}
            Err(error) => {
                trace!(svcrdma_qp_err(ep.peer_addr(), error.to_errno() as isize));
                return Err(error);
            }
            opened => return opened,
        }
    }
}

/// Sizes of a message of up to `send` octets, or of so many pages.
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
    ep: &Endpoint<Channel>,
    xprt: &NewXprt<Connection>,
    terms: &Terms,
    agreement: &Agreement,
    opened: &QueueDepths,
    device: &DeviceAttrs,
) -> Result<Demand> {
    let channel = ep.context();
    let limits = &terms.limits;
    let pages = xprt.max_pages();
    channel.sending().open(
        message_sizes(agreement.send, limits, opened, pages),
        limits.send_entries(opened),
    );
    let regions = if device.registers_to_read {
        opened.rdma_ctxs
    } else {
        0
    };
    let demand = Demand::new(regions, device.max_fast_reg_pages);
    channel.incoming().lock().regions.open(&demand);
    if terms.extensions.pulled_replies {
        let most = u32::try_from(pages)?.min(device.max_fast_reg_pages);
        channel
            .exposed()
            .open(ep, xprt.handle(), limits.places, most, device.sg_gaps)?;
    }
    Ok(demand)
}

impl Connection {
    /// Most segments in which a Reply can be exposed.
    pub(super) fn exposed_segments(&self) -> u32 {
        if self.extensions.pulled_replies {
            EXPOSED_SEGMENTS
        } else {
            0
        }
    }
}

impl svc::Connection for Connection {
    type Call = Buffer;

    fn receive(&self, rqst: Arriving<'_, Self>) -> Received {
        self.receive_call(rqst)
    }

    fn result_payload(&self, buffer: &mut Buffer, offset: u32, length: u32) {
        buffer.user_mut().call.add_result(offset, length);
    }

    fn send(&self, buffer: &mut Buffer, reply: Reply<'_>) -> Result {
        self.send_reply(buffer, reply)
    }

    fn release(&self, buffer: Option<Buffer>) {
        let channel = self.ep.context();
        if let Some(buffer) = buffer {
            channel.receives().recycle(buffer);
        }
        channel.clear_finished(&self.ep);
    }

    fn reverse_limits(&self) -> ReverseLimits {
        ReverseLimits {
            calls: self.reverse,
            octets: self.agreement.reverse_payload(),
        }
    }

    fn call_back(&self, xid: u32, message: &XdrBuf) -> core::result::Result<(), CallError> {
        self.send_reverse_call(xid, message)
    }

    fn has_room(&self) -> bool {
        !self.ep.context().sending().queue().is_full()
    }

    fn detach(&self) {
        let channel = self.ep.context();
        if channel.is_established() {
            // An iWARP device that is asked to come to an end in its own time may lose what is on
            // its queues, and then it is never ours again.
            self.ep.break_off();
        } else {
            // Nothing is on the Send Queue. The connection manager must not see an iWARP connection
            // close that it has not seen made.
            self.ep.disconnect();
        }
        // SUNRPC does not always close by way of `Channel::close`.
        channel.sending().queue().close();
    }
}
