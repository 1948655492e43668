// SPDX-License-Identifier: GPL-2.0

//! The RDMA device: its queue pairs, completion queues and memory regions.

use core::cell::RefCell;
use core::ffi::c_void;
use std::collections::{BTreeMap, VecDeque};

use kernel::ffi::c_int;
use kernel::sched;

use super::*;

/// What a device does wrong, and what it has of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Its limits.
    pub(crate) attrs: ib_device_attr,
    /// One in so many posts is refused.
    pub(crate) refuses: u32,
    /// Whether it has posted the chain if it names no work request; found when it first does so.
    pub(crate) posts_unnamed: Option<bool>,
    /// One in so many posts of LOCAL_INVs is refused.
    pub(crate) refuses_inv: u32,
    /// It refuses all LOCAL_INVs, although it reports that it has them.
    pub(crate) lacks_inv: bool,
    /// One in so many queue pairs cannot be created.
    pub(crate) few_queues: u32,
    /// MRs that a protection domain may have; 0 if there is no limit.
    pub(crate) few_mrs: usize,
    /// A peer that sends without a Receive breaks a law.
    pub(crate) honest: bool,
    /// It is one of iWARP.
    pub(crate) iwarp: bool,
    /// Its driver computes where a region begins from the low half of the region's address, as
    /// ocrdma does.
    pub(crate) begins_by_address: bool,
    /// It has bounce buffers (swiotlb) instead of an IOMMU: an entry of less than a page begins
    /// anywhere in a page.
    pub(crate) bounces: bool,
    /// Its IOMMU maps pages that adjoin in a transfer to one range.
    pub(crate) merges: bool,
    /// One in so many times a worker of a completion queue stands still for up to three seconds.
    pub(crate) late: u32,
    /// One in so many Reads is never answered.
    pub(crate) stalls_reads: u32,
    /// One in so many Reads over iWARP is ended early by a peer that does not keep to the protocol,
    /// and completes as a success.
    pub(crate) short_reads: u32,
    /// One in so many Sends finds no Receive, and is tried again for ever.
    pub(crate) stalls_sends: u32,
    /// What a Reply of the module grants.
    pub(crate) grants: Grants,
    /// It reports each work request that has a CQE, signalled or not.
    pub(crate) reports_all: bool,
}

/// The credits that a Reply grants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Grants {
    /// Those that its sender has put there.
    AsSent,
    /// As many, or fewer, each time.
    Any,
    One,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            attrs: ib_device_attr {
                device_cap_flags: u64::from(ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS),
                kernel_cap_flags: 0,
                max_qp_wr: 16_384,
                max_cqe: 65_536,
                max_send_sge: 16,
                max_sge_rd: 16,
                max_sgl_rd: 0,
                max_fast_reg_page_list_len: 256,
                max_qp_rd_atom: 16,
                max_qp_init_rd_atom: 16,
            },
            refuses: 0,
            posts_unnamed: None,
            refuses_inv: 0,
            lacks_inv: false,
            few_queues: 0,
            few_mrs: 0,
            honest: true,
            iwarp: false,
            begins_by_address: false,
            bounces: false,
            merges: false,
            late: 0,
            stalls_reads: 0,
            short_reads: 0,
            stalls_sends: 0,
            grants: Grants::AsSent,
            reports_all: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QpState {
    Init,
    Rts,
    Error,
}

/// What a work request does.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Send {
        invalidate: Option<u32>,
    },
    Write {
        addr: u64,
        rkey: u32,
    },
    Read {
        addr: u64,
        rkey: u32,
    },
    /// A Read that the peer does not answer.
    StalledRead,
    /// A Send for which the peer posts no Receive.
    StalledSend,
    /// RDMA Write With Immediate, which only peers of the stage post.
    Immediate {
        addr: u64,
        rkey: u32,
    },
    Register {
        mr: u32,
        valid: Valid,
    },
    Invalidate {
        rkey: u32,
    },
    /// The marker of a drain.
    Drain,
}

/// The sink of a Read over iWARP: an STag, and where in its region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sink {
    pub(super) stag: u32,
    pub(super) addr: u64,
    pub(super) len: u32,
}

pub(super) struct Wqe {
    pub(super) op: Op,
    pub(super) sges: Vec<(u64, u32)>,
    /// Over iWARP, a Read has this instead.
    pub(super) sink: Option<Sink>,
    /// What a peer sends or writes, or has read.
    pub(super) bytes: Vec<u8>,
    pub(super) signaled: bool,
    pub(super) cqe: *mut ib_cqe,
    /// How it has ended at the peer.
    pub(super) result: Option<ib_wc_status>,
}

impl Wqe {
    pub(super) fn is_read(&self) -> bool {
        matches!(self.op, Op::Read { .. } | Op::StalledRead)
    }
}

/// A region of the pool of a queue pair, for Reads over iWARP.
#[derive(Clone, Copy)]
pub(super) struct PoolMr {
    pub(super) raw: *mut ib_mr,
}

pub(super) struct RecvWqe {
    pub(super) sge: (u64, u32),
    pub(super) cqe: *mut ib_cqe,
}

/// An event of a queue pair that belongs to the stage.
#[derive(Debug)]
pub(crate) enum PeerEvent {
    /// A message.
    Received {
        bytes: Vec<u8>,
        invalidated: Option<u32>,
    },
    /// A Send or Write has completed.
    Sent,
    /// A Read has completed.
    Read(Vec<u8>),
    /// The queue pair is in the error state.
    Error,
}

pub(crate) struct Qp {
    pub(super) pd: u32,
    pub(crate) state: QpState,
    /// The other end.
    pub(crate) other: Option<u32>,
    pub(super) send: VecDeque<Wqe>,
    pub(super) recv: VecDeque<RecvWqe>,
    /// Entries of the Send Queue in use: posted, and not yet retired by a completion.
    pub(super) used: usize,
    /// Entries whose work requests have ended without a completion of their own.
    pub(super) unretired: usize,
    pub(super) cap: ib_qp_cap,
    pub(super) cqs: Option<(u32, u32)>,
    pub(super) raw: *mut ib_qp,
    pub(super) event: Option<unsafe extern "C" fn(*mut ib_event, *mut c_void)>,
    pub(super) context: *mut c_void,
    /// For a queue pair of the stage.
    pub(crate) inbox: VecDeque<PeerEvent>,
    /// Whether its end keeps to the protocol. Others may be denied anything, and send without a
    /// Receive.
    pub(crate) honest: bool,
    /// It has accepted the connection, and has heard of the other end.
    pub(super) accepted: bool,
    pub(super) heard: bool,
    /// The number of regions of the core, and those that no transfer uses.
    pub(super) regions: usize,
    pub(super) pool: Vec<PoolMr>,
}

impl Qp {
    /// A queue pair of the stage, in the domain `pd`.
    pub(super) fn new(pd: u32) -> Self {
        Self {
            pd,
            state: QpState::Init,
            other: None,
            send: VecDeque::new(),
            recv: VecDeque::new(),
            used: 0,
            unretired: 0,
            cap: ib_qp_cap::default(),
            cqs: None,
            raw: core::ptr::null_mut(),
            event: None,
            context: core::ptr::null_mut(),
            inbox: VecDeque::new(),
            honest: true,
            accepted: false,
            heard: false,
            regions: 0,
            pool: Vec::new(),
        }
    }
}

pub(super) struct Cqe {
    pub(super) wc: ib_wc,
    /// The queue pair, and the entries of its Send Queue that this retires.
    pub(super) retires: Option<(u32, usize)>,
}

pub(super) struct Cq {
    pub(super) raw: *mut ib_cq,
    pub(super) capacity: usize,
    pub(super) queue: VecDeque<Cqe>,
    pub(super) busy: bool,
}

/// What a peer may access by an rkey.
#[derive(Clone, Debug)]
pub(super) struct Valid {
    pub(super) rkey: u32,
    pub(super) iova: u64,
    pub(super) length: u64,
    pub(super) access: c_int,
    pub(super) memory: Memory,
    /// A peer has written to it since it was registered.
    pub(super) written: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Memory {
    Mapped(Vec<(u64, u32)>),
    Owned(Vec<u8>),
}

pub(super) struct Mr {
    pub(super) pd: u32,
    pub(super) segments: Vec<(u64, u32)>,
    pub(super) valid: Option<Valid>,
    /// The content of a region of the stage that was invalidated.
    pub(super) kept: Vec<u8>,
    /// One of the core.
    pub(super) of_core: bool,
}

/// All devices, and what connects them.
#[derive(Default)]
pub(crate) struct Fabric {
    pub(crate) device: Device,
    pub(crate) qps: BTreeMap<u32, Qp>,
    pub(super) cqs: BTreeMap<u32, Cq>,
    pub(super) mrs: BTreeMap<u32, Mr>,
    pub(super) pds: Vec<u32>,
    /// The devices of domains and completion queues, by address.
    pub(super) owners: BTreeMap<u32, usize>,
    pub(super) next: u32,
    /// Completions that were handled, of all completion queues.
    pub(super) handled: u64,
    /// LOCAL_INVs that a device without this operation has refused.
    pub(super) refused_inv: u32,
    /// What a peer was denied.
    pub(crate) denied: Vec<String>,
}

thread_local! {
    static FABRIC: RefCell<Fabric> = RefCell::default();
    static DEVICES: &'static [core::cell::UnsafeCell<ib_device>; 2] = Box::leak(Box::default());
}

pub(crate) fn fabric<R>(f: impl FnOnce(&mut Fabric) -> R) -> R {
    FABRIC.with_borrow_mut(f)
}

impl Fabric {
    /// From now on each Send finds a Receive, also those that are tried again and again.
    pub(crate) fn find_receives(&mut self) {
        self.device.stalls_sends = 0;
        let all = self.qps.values_mut().flat_map(|qp| &mut qp.send);
        for wqe in all.filter(|wqe| matches!(wqe.op, Op::StalledSend)) {
            wqe.op = Op::Send { invalidate: None };
        }
    }
}

/// The device of the server.
pub(crate) fn device() -> *mut ib_device {
    devices()[0]
}

/// The devices of the server and of the client.
pub(crate) fn devices() -> [*mut ib_device; 2] {
    DEVICES.with(|devices| [devices[0].get(), devices[1].get()])
}

/// Sets what the device has and does.
pub(crate) fn set_device(config: Device) {
    // SAFETY: No other reference to the device is in use.
    unsafe {
        for (device, name) in devices().into_iter().zip([b"sim0\0", b"sim1\0"]) {
            (*device).attrs = config.attrs;
            (*device).ops.driver_id = match config.begins_by_address {
                true => rdma_driver_id_RDMA_DRIVER_OCRDMA,
                false => rdma_driver_id_RDMA_DRIVER_UNKNOWN,
            };
            for (to, from) in (*device).name.iter_mut().zip(name) {
                *to = *from;
            }
        }
    }
    fabric(|f| f.device = config);
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    FABRIC.with(|fabric| {
        // A context that never goes on may have it borrowed.
        if let Ok(mut fabric) = fabric.try_borrow_mut() {
            core::mem::forget(core::mem::take(&mut *fabric));
        }
    });
}

/// What is left of all queues and regions.
pub(crate) fn leftovers() -> String {
    fabric(|f| {
        let mut left = String::new();
        for (what, count) in [
            ("queue pairs", f.qps.len()),
            ("completion queues", f.cqs.len()),
            ("regions", f.mrs.len()),
            ("domains", f.pds.len()),
        ] {
            if count > 0 {
                left += &format!("{count} {what}, ");
            }
        }
        left
    })
}

pub(super) fn number(f: &mut Fabric) -> u32 {
    f.next += 1;
    f.next
}

impl Fabric {
    pub(super) fn qp(&mut self, number: u32) -> &mut Qp {
        self.qps.get_mut(&number).expect("a queue pair")
    }

    /// Moves a queue pair to the error state.
    pub(crate) fn set_error(&mut self, number: u32) {
        if let Some(qp) = self.qps.get_mut(&number) {
            if qp.state != QpState::Error {
                say!("QP {number} enters the error state");
                qp.state = QpState::Error;
                if qp.cqs.is_none() {
                    qp.send.clear();
                    qp.inbox.push_back(PeerEvent::Error);
                }
            }
        }
    }

    /// Adds a completion.
    pub(super) fn complete(&mut self, cq: u32, cqe: Cqe) {
        let cq = self.cqs.get_mut(&cq).expect("a completion queue");
        if cq.queue.len() == cq.capacity {
            sched::fail("a completion queue overflows");
        }
        cq.queue.push_back(cqe);
    }
}
