// SPDX-License-Identifier: GPL-2.0

//! Queue depths and message sizes of a connection: the tunables, within what its device supports.
//!
//! C: xprt_rdma.h, struct rpcrdma_ep
//! C: frwr_ops.c, frwr_query_device()

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
            self,
            round_down,
            PrivateData,
            MIN_SIZE, //
        },
        size,
        MIN_LEN, //
    }, //
};

use super::tunables;

/// Bytes of the largest READ or WRITE. Every device must support it: NFS negotiates `rsize` and
/// `wsize` at mount, and may reconnect through another device.
const MAX_IO: u32 = 1 << 20;
/// Pages of such a data item, if it does not start at a page boundary.
pub(super) const MAX_PAGES: u32 = MAX_IO / PAGE_SIZE as u32 + 1;
/// Head, tail, and the page in which the tail's roundup ends, as MRs of their own.
const OTHER_PAGES: u32 = 3;

/// Segments in one chunk. With more, the largest header could exceed a small message.
pub(super) const MAX_SEGMENTS: u32 = 16;

/// Length of the send buffer, if the device can gather the rest of a longer message from pages.
const SEND_BUF: u32 = 4096;
/// Length of a buffer whose allocation does not fail, and for which fragmented bounce buffers have
/// room. That does not depend on the page size.
const SMALL: u32 = 4096;

/// Header, head and tail of a message need an SGE each. All devices support that many.
const MIN_SGES: u32 = 3;
/// In addition, up to 16 pages are gathered.
const MAX_SGES: u32 = MIN_SGES + 16;
/// With fewer SGEs, a Send Queue entry is no smaller on common devices, and RDMA Reads need more
/// entries.
const FEW_SGES: u32 = 7;

/// On a device with short queues, one in so many entries is for the backchannel.
const BACKCHANNEL_SHARE: u32 = 8;

/// MRs for four Calls, most of which have two at most: one for data, and one for a Reply chunk.
const MRS_PER_4_CALLS: u32 = 9;
/// The number of largest Calls that a connection with few credits has MRs for.
const LARGE_CALLS: u32 = 4;

/// RDMA_DONEs whose Sends may be outstanding.
pub(super) const DONES: u32 = 16;

/// RDMA Reads that may be outstanding. More would only queue at the server.
const MAX_READ_DEPTH: u32 = 16;

/// Replies of the largest size that may be read concurrently. Most Replies are far smaller.
const REPLY_READS: u32 = 2;
/// Where head, pages and tail of a buffer meet, one Read ends and another begins.
const SEAMS: u32 = 2;

/// Entries for `ib_drain_qp()`: it posts one WR at a time, and one entry is spare.
const DRAIN: u32 = 2;

/// A capability that the device lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsupported {
    KernelVerbs,
    Registration,
    Invalidation,
    SendElements,
    MrPages,
    Queues,
}

impl Unsupported {
    /// All capabilities, by their discriminants.
    pub(super) const ALL: [Self; 6] = [
        Self::KernelVerbs,
        Self::Registration,
        Self::Invalidation,
        Self::SendElements,
        Self::MrPages,
        Self::Queues,
    ];

    /// Its name in the kernel log.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KernelVerbs => "queue pairs for the kernel",
            Self::Registration => "memory registration by work request (FRWR)",
            Self::Invalidation => "invalidation by work request (LOCAL_INV)",
            Self::SendElements => "Sends of three elements",
            Self::MrPages => "memory regions large enough for 1 MiB",
            Self::Queues => "room for a Call in its queues",
        }
    }
}

/// The limits of one connection.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Calls that may be outstanding: the credits to ask for.
    pub(super) credits: u32,
    /// Backchannel Calls that may be outstanding: the credits to grant.
    pub(super) backchannel: u32,
    /// Segments in a chunk.
    pub(super) segments: u32,
    /// MRs that one Call may use.
    pub(super) mrs_per_call: u32,
    /// Pages in an MR.
    pub(super) mr_pages: u32,
    /// Whether an MR may have gaps.
    pub(super) gaps: bool,
    /// SGEs of a Send.
    sges: u32,
    /// Entries of the Send Queue for everything but Calls.
    other_entries: u32,
    /// RDMA Reads that may be outstanding; 0 if no Replies are pulled.
    pub(super) read_depth: u8,
    /// Whether to pull Replies even if they are usually long.
    pub(super) all_pulled: bool,
    /// Entries of the Send Queue for these RDMA Reads.
    pub(super) reply_read_entries: u32,
    /// This end's CM private data.
    pub(super) own: PrivateData,
}

impl Limits {
    /// The limits of a connection whose device is not known yet: one Call, as on any new
    /// connection.
    pub(super) const NONE: Self = Self {
        credits: 1,
        backchannel: 0,
        segments: 0,
        mrs_per_call: 0,
        mr_pages: 0,
        gaps: false,
        sges: MIN_SGES,
        other_entries: 0,
        read_depth: 0,
        all_pulled: false,
        reply_read_entries: 0,
        own: PrivateData {
            remote_invalidation: false,
            send_size: MIN_SIZE,
            receive_size: MIN_SIZE,
        },
    };

    /// The limits that `device` allows, for up to `slots` Calls and `backchannel` backchannel
    /// Calls.
    ///
    /// # Errors
    ///
    /// The capability that the device [lacks](Unsupported).
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
        if device.refuses_local_inv {
            return Err(Unsupported::Invalidation);
        }
        if device.max_send_sge < MIN_SGES {
            return Err(Unsupported::SendElements);
        }
        let send_size = round_down(tunables::INLINE_WRITE.get());
        let sges = device.max_send_sge.min(wanted_sges(send_size));
        let (segments, mr_pages) = mr_sizes(device)?;
        // A Call may have two chunks, its own and one for its Reply, but not two large ones.
        let mrs_per_call = segments + 2;
        let per_call = entries_per_call(mrs_per_call);
        let depth = device.max_qp_wr.min(device.max_cqe);
        let backchannel = backchannel.min(depth / BACKCHANNEL_SHARE);
        let others = backchannel + ctrl_sends(backchannel) + DRAIN;
        let room = depth.saturating_sub(others);
        // Calls have priority: they get half of the entries, and at least those of one Call.
        let reply_reads = ReplyReadSizes::for_device(device, sges)
            .filter(|sizes| {
                room.saturating_sub(sizes.entries_and_dones()) >= per_call.max(room / 2)
            })
            .unwrap_or_default();
        let other_entries = others + reply_reads.entries_and_dones();
        let room = depth.saturating_sub(other_entries);
        // The Receive Queue needs entries for a batch in addition.
        let credits = slots.min(room / per_call).min(room / 5 * 4);
        if credits == 0 || backchannel == 0 {
            return Err(Unsupported::Queues);
        }
        let remote_invalidation = tunables::REMOTE_INVALIDATION.get() != 0;
        Ok(Self {
            credits,
            backchannel,
            segments,
            mrs_per_call,
            mr_pages,
            gaps: device.sg_gaps,
            sges,
            other_entries,
            read_depth: reply_reads.depth,
            all_pulled: tunables::PULLED_REPLIES.get() == 2,
            reply_read_entries: reply_reads.entries,
            own: PrivateData {
                // The flag promises that each handle is registered for one Call, which is always
                // so. Not on iWARP, see `MrList::take_invalidated`.
                remote_invalidation: remote_invalidation && !device.registers_to_read,
                send_size,
                receive_size: round_down(tunables::INLINE_READ.get()),
            },
        })
    }

    /// MRs of the connection: those of small Calls, and some more for larger ones. A Call that
    /// finds too few waits until others return theirs.
    pub(super) fn max_mrs(&self) -> u32 {
        let all = self.credits.saturating_mul(self.mrs_per_call);
        let small = self.credits.saturating_mul(MRS_PER_4_CALLS) / 4;
        all.min(small.max(LARGE_CALLS * self.mrs_per_call))
    }

    /// Entries of the Send Queue for Calls.
    ///
    /// The queue has the Sends that have not completed, and one LOCAL_INV for each MR in use. It
    /// may also have the registrations of these MRs: a Call with several MRs invalidates one of
    /// them at least, behind its registrations. In addition, the peer may have invalidated one MR
    /// of each Send, and the MR may be in use again before the completion of the Send is seen.
    fn call_entries(&self) -> u32 {
        let all = self.credits * entries_per_call(self.mrs_per_call);
        all.min(2 * (self.credits + self.max_mrs()))
    }

    /// The queues to create.
    pub(super) fn queue_depths(&self) -> QueueDepths {
        let send = self.call_entries() + self.other_entries;
        let recv = self.credits + self.receive_batch() + self.backchannel + DRAIN;
        QueueDepths {
            send_wr: send,
            recv_wr: recv,
            send_sge: self.sges,
            rdma_ctxs: 0,
            send_cqe: send,
            recv_cqe: recv,
        }
    }

    /// Receives that are posted beyond the needed ones, so that not every Reply rings a doorbell.
    pub(super) fn receive_batch(&self) -> u32 {
        self.credits / 4
    }

    /// Halves the credits, because the driver cannot allocate queues as deep; `false` if there is
    /// one credit left.
    pub(super) fn halve(&mut self) -> bool {
        let fewer = self.credits > 1;
        if fewer {
            self.credits /= 2;
        }
        fewer
    }

    /// Sizes of the [`RequestSender`](crate::verbs::RequestSender).
    pub(super) fn sender(&self) -> SenderSizes {
        SenderSizes {
            messages: self.credits + self.backchannel,
            buffer: self.send_buf() as usize,
            sges: self.sges,
            batch: self.credits / 8,
            mr_pages: self.mr_pages,
            gaps: self.gaps,
            mrs: self.mrs_per_call,
        }
    }

    /// Control Sends for RDMA_ERROR.
    pub(super) fn ctrl_sends(&self) -> u32 {
        ctrl_sends(self.backchannel)
    }

    /// Length of a send buffer. The longest message is gathered if the device supports enough SGEs,
    /// and copied into the buffer otherwise.
    fn send_buf(&self) -> u32 {
        let gathered = (self.sges - MIN_SGES) * PAGE_SIZE as u32;
        if self.own.send_size <= gathered {
            self.own.send_size.min(SEND_BUF)
        } else {
            self.own.send_size
        }
    }

    /// Makes messages smaller after an allocation failure; `false` if they are small.
    pub(super) fn shrink(&mut self) -> bool {
        let own = &mut self.own;
        private_data::shrink(&mut own.send_size, &mut own.receive_size, SMALL)
    }

    /// Receives that are posted before the connection request: for one Reply, and for backchannel
    /// Calls.
    pub(super) fn first_receives(&self) -> u32 {
        1 + self.backchannel
    }

    /// Length of a Call up to which it is copied rather than gathered, if a message may have `send`
    /// bytes.
    ///
    /// Header and Call share the send buffer. If a message cannot be longer than the buffer, `send`
    /// already accounts for the header. Otherwise any header must fit in addition.
    fn pull_up(&self, send: u32) -> u32 {
        let header = if send <= self.send_buf() {
            0
        } else {
            size::max_call(self.segments as usize)
        };
        // CAST: A few hundred bytes.
        self.send_buf().saturating_sub(header as u32)
    }

    /// Length of a backchannel Call, and of its Reply, on a connection with this agreement.
    ///
    /// The callback service keeps a message in one page. A Reply is copied into the send buffer,
    /// behind its header.
    pub(super) fn backchannel_payload(&self, agreement: &Agreement) -> u32 {
        // CAST: 28 bytes.
        let buf = self.send_buf().saturating_sub(MIN_LEN as u32);
        agreement
            .backchannel_payload()
            .min(buf)
            .min(PAGE_SIZE as u32)
    }

    /// The extensions beyond RFC 8166 that this end offers.
    pub(super) fn offer(&self) -> Offer {
        Offer {
            pulled_replies: self.read_depth > 0,
        }
    }

    /// Limits on a Call on a connection with this agreement and these extensions, to a server that
    /// has sent `private_data` or not.
    ///
    /// The C module sends private data since Linux 4.9, illumos does not. Only illumos is known to
    /// need room for the roundup.
    pub(super) fn call_limits(
        &self,
        agreement: &Agreement,
        extensions: &Extensions,
        private_data: bool,
    ) -> CallLimits {
        CallLimits {
            send: agreement.send,
            receive: agreement.receive,
            pull_up: self.pull_up(agreement.send),
            buf_len: self.send_buf(),
            sges: self.sges,
            segments: self.segments,
            segment_pages: self.mr_pages,
            page_shift: PAGE_SHIFT as u32,
            pulled_replies: extensions.pulled_replies,
            room_for_roundup: !private_data,
        }
    }
}

/// SGEs of a Send, if the longest message has `send_size` bytes, not necessarily from a page
/// boundary on.
fn wanted_sges(send_size: u32) -> u32 {
    let pages = send_size.div_ceil(PAGE_SIZE as u32) + 1;
    (MIN_SGES + pages).clamp(FEW_SGES, MAX_SGES)
}

/// Entries of the Send Queue for a Call: each MR is registered and invalidated.
fn entries_per_call(mrs: u32) -> u32 {
    1 + 2 * mrs
}

/// Segments in a chunk, and pages in an MR.
fn mr_sizes(device: &DeviceAttrs) -> Result<(u32, u32), Unsupported> {
    // Some devices support larger MRs, but are faster with at most `max_sge_rd` pages.
    let fast = match device.max_sge_rd {
        fast if fast > MAX_SEGMENTS => fast,
        _ => MAX_PAGES,
    };
    let pages = device.max_fast_reg_pages.min(fast).min(MAX_PAGES);
    let wanted = MAX_PAGES.div_ceil(pages) + 2;
    let segments = wanted.min(MAX_SEGMENTS);
    if segments * pages < MAX_PAGES + OTHER_PAGES {
        Err(Unsupported::MrPages)
    } else {
        Ok((segments, pages))
    }
}

/// Resources for pulled Replies; none by default.
#[derive(Clone, Copy, Default)]
struct ReplyReadSizes {
    /// RDMA Reads that may be outstanding.
    depth: u8,
    /// Entries of the Send Queue for RDMA Reads.
    entries: u32,
}

impl ReplyReadSizes {
    /// For RDMA Reads into up to `sges` SGEs each, if the device is suitable.
    fn for_device(device: &DeviceAttrs, sges: u32) -> Option<Self> {
        // Each Read would need an MR, for which this end has no room.
        if tunables::PULLED_REPLIES.get() == 0 || device.rw_needs_mrs() {
            return None;
        }
        let depth = device.max_qp_init_rd_atom.min(MAX_READ_DEPTH);
        let reads = (MAX_PAGES + OTHER_PAGES).div_ceil(sges.min(device.max_sge_rd).max(1));
        (depth > 0).then(|| Self {
            // CAST: At most `MAX_READ_DEPTH`.
            depth: depth as u8,
            entries: REPLY_READS * (reads + MAX_SEGMENTS + SEAMS),
        })
    }

    /// Entries of the Send Queue for RDMA Reads and RDMA_DONEs.
    fn entries_and_dones(&self) -> u32 {
        match self.depth {
            0 => 0,
            _ => self.entries + DONES,
        }
    }
}

/// Control Sends for RDMA_ERROR. The completion of a Send may arrive after the peer has received
/// the error and has sent another Call.
const fn ctrl_sends(backchannel: u32) -> u32 {
    2 * backchannel
}
