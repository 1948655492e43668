// SPDX-License-Identifier: GPL-2.0

//! The RDMA device: queue pairs, completion queues, memory regions, and what they do.
//!
//! The work requests of a Send Queue take effect at the peer one after the other, and complete one
//! after the other, some time later. Between the two, and until then, the device may access what
//! they name. Each is one step of [`Fabric`].

use core::cell::RefCell;
use core::ffi::c_void;
use std::collections::{BTreeMap, VecDeque};

use kernel::ffi::{c_char, c_int, c_uint};
use kernel::sched;

use super::iwarp_law::Sink;
use super::rw_mr::PoolMr;
use super::*;

/// What a device does wrong, and what it has of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Its limits.
    pub(crate) attrs: ib_device_attr,
    /// One in so many posts is refused.
    pub(crate) refuses: u32,
    /// One in so many queue pairs cannot be created.
    pub(crate) few_queues: u32,
    /// A peer that sends without a Receive breaks a law.
    pub(crate) honest: bool,
    /// It is one of iWARP.
    pub(crate) iwarp: bool,
    /// One in so many times a worker of a completion queue stands still for up to three seconds.
    pub(crate) late: u32,
    /// What a Reply of the module grants.
    pub(crate) grants: Grants,
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
                max_fast_reg_page_list_len: 256,
                max_qp_rd_atom: 16,
                max_qp_init_rd_atom: 16,
            },
            refuses: 0,
            few_queues: 0,
            honest: true,
            iwarp: false,
            late: 0,
            grants: Grants::AsSent,
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
    /// One of the core, which leaves it valid after a Read.
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
            for (to, from) in (*device).name.iter_mut().zip(name) {
                *to = *from;
            }
        }
    }
    fabric(|f| f.device = config);
    credit_law::begin();
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

    /// Ends the first work request of a Send Queue.
    pub(super) fn end_first(&mut self, number: u32, status: ib_wc_status) {
        let qp = self.qp(number);
        let wqe = qp.send.pop_front().expect("a work request");
        let Some((send_cq, _)) = qp.cqs else {
            qp.inbox.push_back(match wqe.op {
                Op::Read { .. } => PeerEvent::Read(wqe.bytes),
                _ => PeerEvent::Sent,
            });
            if status != ib_wc_status_IB_WC_SUCCESS {
                self.set_error(number);
            }
            return;
        };
        qp.unretired += 1;
        if !wqe.signaled && status == ib_wc_status_IB_WC_SUCCESS {
            return;
        }
        let retired = core::mem::take(&mut qp.unretired);
        let mut wc = ib_wc {
            status,
            opcode: 0,
            ..ib_wc::default()
        };
        // SAFETY: A plain member.
        unsafe { *wc.__bindgen_anon_1.wr_cqe.as_mut() = wqe.cqe };
        if status != ib_wc_status_IB_WC_SUCCESS {
            say!("QP {number}: {:?} ends with status {status}", wqe.op);
            if status != ib_wc_status_IB_WC_WR_FLUSH_ERR {
                self.set_error(number);
            }
        }
        let retires = Some((number, retired));
        self.complete(send_cq, Cqe { wc, retires });
    }

    /// Finds what `rkey` gives access to, for the other end of a queue pair of domain `pd`.
    pub(super) fn reach(
        &mut self,
        pd: u32,
        rkey: u32,
        addr: u64,
        len: usize,
        access: c_uint,
    ) -> Result<&mut Valid, String> {
        let mr = self.mrs.get_mut(&(rkey >> 8)).filter(|mr| mr.pd == pd);
        let valid = mr.and_then(|mr| mr.valid.as_mut());
        let Some(valid) = valid.filter(|valid| valid.rkey == rkey) else {
            return Err(format!("rkey {rkey:#x} is not valid"));
        };
        if valid.access & access as c_int == 0 {
            return Err(format!("rkey {rkey:#x} gives other rights"));
        }
        let end = addr.checked_add(len as u64);
        if addr < valid.iova || end.is_none_or(|end| end > valid.iova + valid.length) {
            return Err(format!(
                "{len} bytes at {addr:#x} are beyond rkey {rkey:#x}"
            ));
        }
        Ok(valid)
    }

    pub(super) fn invalidate(&mut self, pd: u32, rkey: u32) -> Result<(), String> {
        let mr = self.mrs.get_mut(&(rkey >> 8)).filter(|mr| mr.pd == pd);
        match mr {
            Some(mr) if mr.valid.as_ref().is_some_and(|valid| valid.rkey == rkey) => {
                if let Some(Valid {
                    memory: Memory::Owned(bytes),
                    ..
                }) = mr.valid.take()
                {
                    mr.kept = bytes;
                }
                Ok(())
            }
            _ => Err(format!("rkey {rkey:#x} is invalidated and not valid")),
        }
    }

    /// Has the first work request that has not ended take effect.
    pub(super) fn execute(&mut self, number: u32) {
        let qp = self.qp(number);
        let (pd, other) = (qp.pd, qp.other);
        let at = qp
            .send
            .iter()
            .position(|wqe| wqe.result.is_none())
            .expect("a work request");
        let (op, sges, bytes, sink) = {
            let wqe = &mut qp.send[at];
            (
                wqe.op.clone(),
                wqe.sges.clone(),
                core::mem::take(&mut wqe.bytes),
                wqe.sink,
            )
        };
        let is_message = !matches!(op, Op::Register { .. } | Op::Invalidate { .. } | Op::Drain);
        if let Some(other) = other.filter(|_| is_message) {
            self.first_message(number, other);
        }
        say!(
            "QP {number}: {op:?} of {} bytes",
            length(&sges) + bytes.len()
        );
        let done = match op {
            Op::Register { mr, valid } => {
                self.mrs.get_mut(&mr).expect("a region").valid = Some(valid);
                Ok(Vec::new())
            }
            Op::Invalidate { rkey } => {
                // It may be invalid already: the peer was faster.
                let _ = self.invalidate(pd, rkey);
                Ok(Vec::new())
            }
            Op::Drain => Ok(Vec::new()),
            Op::Send { invalidate } => {
                let other = other.expect("a connected queue pair");
                let mut bytes = gather(&sges, bytes);
                credit_law::message(self, number, other, &mut bytes);
                self.deliver(other, &bytes, invalidate)
            }
            Op::Write { addr, rkey } => {
                let other = other.expect("a connected queue pair");
                let bytes = gather(&sges, bytes);
                let pd = self.qp(other).pd;
                let access = ib_access_flags_IB_ACCESS_REMOTE_WRITE;
                match self.reach(pd, rkey, addr, bytes.len(), access) {
                    Ok(valid) => {
                        store(valid, addr, &bytes);
                        Ok(Vec::new())
                    }
                    Err(why) => Err((ib_wc_status_IB_WC_REM_ACCESS_ERR, why)),
                }
            }
            Op::Immediate { addr, rkey } => {
                let other = other.expect("a connected queue pair");
                self.write_immediate(other, rkey, addr, &bytes)
            }
            Op::Read { addr, rkey } => {
                let other = other.expect("a connected queue pair");
                let pd = self.qp(other).pd;
                let sunk = sink.map_or(0, |sink| sink.len as usize);
                let len = length(&sges) + bytes.len() + sunk;
                let access = ib_access_flags_IB_ACCESS_REMOTE_READ;
                match self.reach(pd, rkey, addr, len, access) {
                    Ok(valid) => {
                        let read = load(valid, addr, len);
                        scatter(&sges, &read);
                        if let Some(sink) = sink {
                            let own = self.qp(number).pd;
                            self.fill_sink(own, sink, &read);
                        }
                        Ok(read)
                    }
                    Err(why) => Err((ib_wc_status_IB_WC_REM_ACCESS_ERR, why)),
                }
            }
        };
        let status = match done {
            Ok(read) => {
                self.qp(number).send[at].bytes = read;
                ib_wc_status_IB_WC_SUCCESS
            }
            Err((status, why)) => {
                say!("QP {number}: denied: {why}");
                let honest = |number: &u32| self.qps.get(number).is_none_or(|qp| qp.honest);
                if honest(&number) && other.as_ref().is_none_or(honest) {
                    self.denied.push(why);
                }
                if let Some(other) = other {
                    self.set_error(other);
                }
                status
            }
        };
        if let Some(wqe) = self.qp(number).send.get_mut(at) {
            wqe.result = Some(status);
        }
    }
}

pub(super) fn length(sges: &[(u64, u32)]) -> usize {
    sges.iter().map(|(_, len)| *len as usize).sum()
}

fn gather(sges: &[(u64, u32)], mut bytes: Vec<u8>) -> Vec<u8> {
    for (bus, len) in sges {
        bytes.extend(dma::device_reads(*bus, *len as usize));
    }
    bytes
}

fn scatter(sges: &[(u64, u32)], mut bytes: &[u8]) {
    for (bus, len) in sges {
        let (now, later) = bytes.split_at((*len as usize).min(bytes.len()));
        dma::device_writes(*bus, now);
        bytes = later;
    }
}

/// The parts of a region's segments that `len` bytes from `skip` on are in.
fn parts(segments: &[(u64, u32)], mut skip: u64, mut len: usize) -> Vec<(u64, u32)> {
    let mut parts = Vec::new();
    for (bus, size) in segments {
        let size = u64::from(*size);
        if skip >= size {
            skip -= size;
            continue;
        }
        let take = (size - skip).min(len as u64);
        if take > 0 {
            parts.push((bus + skip, take as u32));
        }
        len -= take as usize;
        skip = 0;
    }
    parts
}

pub(super) fn store(valid: &mut Valid, addr: u64, bytes: &[u8]) {
    let skip = addr - valid.iova;
    match &mut valid.memory {
        Memory::Owned(memory) => {
            memory[skip as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        Memory::Mapped(segments) => scatter(&parts(segments, skip, bytes.len()), bytes),
    }
}

fn load(valid: &Valid, addr: u64, len: usize) -> Vec<u8> {
    let skip = addr - valid.iova;
    match &valid.memory {
        Memory::Owned(memory) => memory[skip as usize..][..len].to_vec(),
        Memory::Mapped(segments) => gather(&parts(segments, skip, len), Vec::new()),
    }
}

/// Memory was unmapped: no work request may refer to it, and no peer reach it.
pub(crate) fn unmapped(bus: u64, len: usize) {
    let end = bus + len as u64;
    let overlaps = |(start, size): &(u64, u32)| *start < end && bus < start + u64::from(*size);
    let why = fabric(|f| {
        for (number, qp) in &f.qps {
            let sends = qp.send.iter().any(|wqe| {
                let sinks = wqe.sink.is_some_and(|sink| f.is_sink(sink, overlaps));
                wqe.sges.iter().any(overlaps) || sinks
            });
            if sends || qp.recv.iter().any(|recv| overlaps(&recv.sge)) {
                return Some(format!("{bus:#x} is unmapped while posted on QP {number}"));
            }
        }
        for mr in f.mrs.values() {
            let Some(Valid {
                rkey,
                memory: Memory::Mapped(segments),
                ..
            }) = &mr.valid
            else {
                continue;
            };
            let can = f
                .qps
                .values()
                .any(|qp| qp.pd == mr.pd && qp.state == QpState::Rts);
            if can && !mr.of_core && segments.iter().any(overlaps) {
                return Some(format!(
                    "{bus:#x} is unmapped while the peer has rkey {rkey:#x}"
                ));
            }
        }
        None
    });
    if let Some(why) = why {
        sched::fail(why);
    }
}
