// SPDX-License-Identifier: GPL-2.0

//! How large the parts of a connection are, from what its device can do.

use kernel::page::{
    PAGE_SHIFT,
    PAGE_SIZE, //
};

use crate::{
    engine::{
        agreement::{
            Agreement,
            Extensions, //
        },
        requester::call::CallLimits, //
    },
    verbs::{
        DeviceAttrs,
        QueueDepths,
        SenderSizes, //
    },
    wire::{
        extensions::Offer,
        private_data::{
            round_down,
            PrivateData,
            MIN_SIZE, //
        },
        size,
        MIN_LEN, //
    }, //
};

use super::tunables;

/// Bytes of the largest READ or WRITE. Every device must be capable of it: NFS settles `rsize` and
/// `wsize` at mount, and may reconnect through another device.
const MAX_IO: u32 = 1 << 20;
/// Pages that such an item touches, if it does not start with one.
pub(super) const MAX_PAGES: u32 = MAX_IO / PAGE_SIZE as u32 + 1;
/// Head, tail, and the page in which the tail's roundup ends, as regions of their own.
const OTHER_PAGES: u32 = 3;

/// Segments in one chunk: with more, even the largest header could fill a small message.
pub(super) const MAX_SEGMENTS: u32 = 16;

/// Bytes that a message is composed in, if what is larger can be gathered from pages.
const COMPOSED: u32 = 4096;
/// Bytes of a message for which there is always memory.
const SMALL: u32 = PAGE_SIZE as u32;

/// Header, head and tail of a message are an element each; no device that can do less.
const MIN_SGES: u32 = 3;
/// As many more as pages may be gathered from.
const MAX_SGES: u32 = MIN_SGES + 16;
/// With fewer, an entry of the Send Queue is no smaller on common devices, and what is pulled
/// takes more of them.
const FEW_SGES: u32 = 7;

/// One in so many entries of a queue is for reverse Calls, if the device has few.
const BACKCHANNEL_SHARE: u32 = 8;

/// RDMA_DONEs that may be on their way.
pub(super) const DONES: u32 = 16;

/// RDMA Reads that are started at a time; more would only wait at the peer.
const MAX_READ_DEPTH: u32 = 16;

/// Replies of the largest size that may be pulled at a time, of which most are far smaller.
const REPLY_READS: u32 = 2;
/// Where head, pages and tail of a buffer meet, a Read ends and another begins.
const SEAMS: u32 = 2;

/// Work requests that mark the end of a queue while it is drained: one at a time, with one to
/// spare.
const DRAIN_MARKS: u32 = 2;

/// What a device would need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsupported {
    KernelVerbs,
    Registration,
    SendElements,
    MrPages,
    Queues,
}

impl Unsupported {
    /// For the administrator.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KernelVerbs => "queue pairs for the kernel",
            Self::Registration => "memory registration by work request (FRWR)",
            Self::SendElements => "Sends of three elements",
            Self::MrPages => "regions that are large enough for 1 MiB",
            Self::Queues => "room for a Call in its queues",
        }
    }
}

/// The sizes of one connection.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Calls that may be outstanding, as far as this end is concerned: the credits to ask for.
    pub(super) requests: u32,
    /// Reverse Calls that may be outstanding: the credits to grant.
    pub(super) backchannel: u32,
    /// Segments in a chunk.
    pub(super) segments: u32,
    /// Regions that one Call may use; room on the Send Queue is reckoned with them.
    pub(super) mrs_per_call: u32,
    /// Pages in a region.
    pub(super) mr_pages: u32,
    /// Whether a region may have gaps.
    pub(super) gaps: bool,
    /// Elements of a message.
    sges: u32,
    /// Entries of the Send Queue for all but Calls.
    own_work: u32,
    /// RDMA Reads that this end starts at a time; 0 if Replies are not to be pulled.
    pub(super) read_depth: u8,
    /// Replies are pulled even if they are usually long.
    pub(super) all_pulled: bool,
    /// Entries of the Send Queue for them.
    pub(super) reply_read_entries: u32,
    /// What this end says about itself.
    pub(super) own: PrivateData,
}

impl Limits {
    /// Those of a connection whose device is not known yet: one Call, as on any fresh one.
    pub(super) const NONE: Self = Self {
        requests: 1,
        backchannel: 0,
        segments: 0,
        mrs_per_call: 0,
        mr_pages: 0,
        gaps: false,
        sges: MIN_SGES,
        own_work: 0,
        read_depth: 0,
        all_pulled: false,
        reply_read_entries: 0,
        own: PrivateData {
            remote_invalidation: false,
            send_size: MIN_SIZE,
            receive_size: MIN_SIZE,
        },
    };

    /// The sizes for a device, if it is good enough.
    ///
    /// # Errors
    ///
    /// What the device [does not support](Unsupported).
    pub(super) fn for_device(
        device: &DeviceAttrs,
        slots: u32,
        backchannel: u32,
    ) -> Result<Self, Unsupported> {
        if !device.supported {
            return Err(Unsupported::KernelVerbs);
        }
        if !device.mem_mgt_extensions || device.max_fast_reg_pages == 0 {
            return Err(Unsupported::Registration);
        }
        if device.max_send_sge < MIN_SGES {
            return Err(Unsupported::SendElements);
        }
        let send_size = tunables::send_size();
        let sges = device.max_send_sge.min(wanted_sges(send_size));
        let (segments, mr_pages) = mr_sizes(device)?;
        // A Call may have a chunk of its own and one for its Reply, but not two large ones.
        let mrs_per_call = segments + 2;
        let per_call = work_per_call(mrs_per_call);
        let queue = device.max_qp_wr.min(device.max_cqe);
        let backchannel = backchannel.min(queue / BACKCHANNEL_SHARE);
        let others = backchannel + ctrl_sends(backchannel) + DRAIN_MARKS;
        let room = queue.saturating_sub(others);
        // Calls come first: half of the room is theirs, and room for one.
        let reply_reads = PullSizes::of(device, sges)
            .filter(|p| room.saturating_sub(p.work()) >= per_call.max(room / 2))
            .unwrap_or_default();
        let own_work = others + reply_reads.work();
        let room = queue.saturating_sub(own_work);
        // The Receive Queue takes a batch on top.
        let requests = slots.min(room / per_call).min(room / 5 * 4);
        if requests == 0 || backchannel == 0 {
            return Err(Unsupported::Queues);
        }
        Ok(Self {
            requests,
            backchannel,
            segments,
            mrs_per_call,
            mr_pages,
            gaps: device.sg_gaps,
            sges,
            own_work,
            read_depth: reply_reads.depth,
            all_pulled: tunables::all_pulled(),
            reply_read_entries: reply_reads.entries,
            own: PrivateData {
                // Every handle is registered for one Call, which is what the flag promises. Not on
                // iWARP: see `Endpoint::invalidates_in_order`.
                remote_invalidation: tunables::remote_invalidation() && !device.registers_to_read,
                send_size,
                receive_size: tunables::receive_size(),
            },
        })
    }

    /// The queues to ask for.
    pub(super) fn queues(&self) -> QueueDepths {
        let send = self.requests * work_per_call(self.mrs_per_call) + self.own_work;
        let recv = self.requests + self.receive_batch() + self.backchannel + DRAIN_MARKS;
        QueueDepths {
            send_wr: send,
            recv_wr: recv,
            send_sge: self.sges,
            rdma_ctxs: 0,
            send_cqe: send,
            recv_cqe: recv,
        }
    }

    /// Receives to post beyond those that are needed, so that not every Reply rings a doorbell.
    pub(super) fn receive_batch(&self) -> u32 {
        self.requests / 4
    }

    /// Asks for half as many Calls, since the device has no memory for queues that deep; `false` if
    /// it is one already.
    pub(super) fn halve(&mut self) -> bool {
        let fewer = self.requests > 1;
        if fewer {
            self.requests /= 2;
        }
        fewer
    }

    /// The sending side to make.
    pub(super) fn sender(&self) -> SenderSizes {
        SenderSizes {
            messages: self.requests + self.backchannel,
            buffer: self.composed() as usize,
            sges: self.sges,
            batch: self.requests / 8,
            mr_pages: self.mr_pages,
            gaps: self.gaps,
        }
    }

    /// Messages that refuse reverse Calls.
    pub(super) fn ctrl_sends(&self) -> u32 {
        ctrl_sends(self.backchannel)
    }

    /// Bytes that a message is composed in. The longest one is gathered, if the device has
    /// elements for that, and else copied together.
    fn composed(&self) -> u32 {
        let gathered = (self.sges - MIN_SGES) * PAGE_SIZE as u32;
        if self.own.send_size <= gathered {
            self.own.send_size.min(COMPOSED)
        } else {
            self.own.send_size
        }
    }

    /// Makes messages smaller, since there is no memory in pieces that large; `false` if they are
    /// small.
    pub(super) fn shrink(&mut self) -> bool {
        let largest = self.own.send_size.max(self.own.receive_size);
        if largest <= SMALL {
            return false;
        }
        let most = round_down((largest / 2).max(SMALL));
        self.own.send_size = self.own.send_size.min(most);
        self.own.receive_size = self.own.receive_size.min(most);
        true
    }

    /// Receives that stand when the peer is asked for a connection: for one Reply, and for its
    /// Calls.
    pub(super) fn first_receives(&self) -> u32 {
        1 + self.backchannel
    }

    /// Bytes of a Call that are rather copied than gathered, if a message may have `send` bytes.
    ///
    /// Header and Call share the memory that a message is composed in. If that is all that may be
    /// sent, the header is counted there; else room is left for any header.
    fn pull_up(&self, send: u32) -> u32 {
        let header = if send <= self.composed() {
            0
        } else {
            size::max_call(self.segments as usize)
        };
        // CAST: A few hundred bytes.
        self.composed().saturating_sub(header as u32)
    }

    /// Bytes that a reverse Call, and its Reply, may have on a connection with this agreement.
    ///
    /// The callback service keeps a message in a page; a Reply is composed in one piece, behind its
    /// header.
    pub(super) fn backchannel_payload(&self, agreement: &Agreement) -> u32 {
        // CAST: A few bytes.
        let composed = self.composed().saturating_sub(MIN_LEN as u32);
        agreement
            .backchannel_payload()
            .min(composed)
            .min(PAGE_SIZE as u32)
    }

    /// What this end can do beyond RFC 8166.
    pub(super) fn offer(&self) -> Offer {
        Offer {
            pulled_replies: self.read_depth > 0,
        }
    }

    /// What `agreement`, `extensions` and these sizes allow a Call.
    pub(super) fn call_limits(&self, agreement: &Agreement, extensions: &Extensions) -> CallLimits {
        CallLimits {
            send: agreement.send,
            receive: agreement.receive,
            pull_up: self.pull_up(agreement.send),
            buf_len: self.composed(),
            sges: self.sges,
            segments: self.segments,
            segment_pages: self.mr_pages,
            page_shift: PAGE_SHIFT as u32,
            pulled_replies: extensions.pulled_replies,
        }
    }
}

/// Elements of a message, if the longest one has `send_size` bytes: it need not begin with a page.
fn wanted_sges(send_size: u32) -> u32 {
    let pages = send_size.div_ceil(PAGE_SIZE as u32) + 1;
    (MIN_SGES + pages).clamp(FEW_SGES, MAX_SGES)
}

/// Entries of the Send Queue that a Call takes: each region is registered and invalidated.
fn work_per_call(mrs: u32) -> u32 {
    1 + 2 * mrs
}

/// Segments in a chunk, and pages in a region.
fn mr_sizes(device: &DeviceAttrs) -> Result<(u32, u32), Unsupported> {
    // Some devices can register a lot but are quicker with no more than this.
    let quick = match device.max_sge_rd {
        quick if quick > MAX_SEGMENTS => quick,
        _ => MAX_PAGES,
    };
    let pages = device.max_fast_reg_pages.min(quick).min(MAX_PAGES);
    let wanted = MAX_PAGES.div_ceil(pages) + 2;
    let segments = wanted.min(MAX_SEGMENTS);
    if segments * pages < MAX_PAGES + OTHER_PAGES {
        Err(Unsupported::MrPages)
    } else {
        Ok((segments, pages))
    }
}

/// What is set aside for Replies that are pulled; nothing, if none is to be.
#[derive(Clone, Copy, Default)]
struct PullSizes {
    /// RDMA Reads that are started at a time.
    depth: u8,
    /// Entries of the Send Queue for them.
    entries: u32,
}

impl PullSizes {
    /// For pulling into memory of `sges` elements for each Read, if the device is good for that.
    fn of(device: &DeviceAttrs, sges: u32) -> Option<Self> {
        // Each Read would want a registration.
        if !tunables::pulled_replies() || device.rw_needs_mrs() {
            return None;
        }
        let depth = device.max_qp_init_rd_atom.min(MAX_READ_DEPTH);
        let reads = (MAX_PAGES + OTHER_PAGES).div_ceil(sges.min(device.max_sge_rd).max(1));
        (depth > 0).then(|| Self {
            // CAST: `MAX_READ_DEPTH` at most.
            depth: depth as u8,
            entries: REPLY_READS * (reads + MAX_SEGMENTS + SEAMS),
        })
    }

    /// Entries of the Send Queue for all that pulling takes.
    fn work(&self) -> u32 {
        match self.depth {
            0 => 0,
            _ => self.entries + DONES,
        }
    }
}

/// One comes back a little after it was sent. By then the peer may have seen it, and have called
/// again.
const fn ctrl_sends(backchannel: u32) -> u32 {
    2 * backchannel
}
