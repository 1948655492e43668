// SPDX-License-Identifier: GPL-2.0

//! Queue pairs and regions of peers, which belong to the stage.

use std::collections::VecDeque;

use kernel::ffi::c_int;
use kernel::sched;

use super::fabric::*;
use super::*;

/// A queue pair of the stage, with a domain of its own.
pub(crate) fn peer_qp(receives: usize) -> u32 {
    fabric(|f| {
        let (pd, number) = (number(f), number(f));
        f.qps.insert(number, Qp::new(pd));
        peer_receives(f, number, receives);
        number
    })
}

/// Posts Receives of the stage, for messages of any length.
pub(crate) fn peer_receives(f: &mut Fabric, number: u32, count: usize) {
    for _ in 0..count {
        f.qp(number).recv.push_back(RecvWqe {
            sge: (0, 0),
            cqe: core::ptr::null_mut(),
        });
    }
}

/// The Receives that are posted.
pub(crate) fn posted_receives(number: u32) -> usize {
    fabric(|f| f.qps.get(&number).map_or(0, |qp| qp.recv.len()))
}

/// Removes a queue pair of the stage, with its regions.
pub(crate) fn peer_end(number: u32) {
    fabric(|f| {
        if let Some(qp) = f.qps.remove(&number) {
            f.mrs.retain(|_, mr| mr.pd != qp.pd);
        }
    });
}

fn peer_post(number: u32, op: Op, bytes: Vec<u8>) {
    fabric(|f| {
        let qp = f.qp(number);
        if qp.state != QpState::Error {
            qp.send.push_back(Wqe {
                op,
                sges: Vec::new(),
                sink: None,
                bytes,
                signaled: true,
                cqe: core::ptr::null_mut(),
                result: None,
            });
        }
    });
}

/// Sends a message.
pub(crate) fn peer_send(number: u32, bytes: Vec<u8>, invalidate: Option<u32>) {
    peer_post(number, Op::Send { invalidate }, bytes);
}

/// Reads `len` bytes.
pub(crate) fn peer_read(number: u32, rkey: u32, addr: u64, len: usize) {
    peer_post(number, Op::Read { addr, rkey }, vec![0; len]);
}

/// Writes `bytes`, with immediate data if `immediate` is set.
pub(crate) fn peer_write(number: u32, rkey: u32, addr: u64, bytes: Vec<u8>, immediate: bool) {
    let op = if immediate {
        Op::Immediate { addr, rkey }
    } else {
        Op::Write { addr, rkey }
    };
    peer_post(number, op, bytes);
}

/// The end of this queue pair does not keep to the protocol.
pub(crate) fn peer_is_hostile(number: u32) {
    fabric(|f| f.qp(number).honest = false);
}

/// Whether a queue pair of the module sends what its peer has no Receive for.
pub(crate) fn sends_are_stuck() -> bool {
    fabric(|f| {
        f.qps.values().any(|qp| {
            let other = qp.other.and_then(|other| f.qps.get(&other));
            let waits = other.is_some_and(|other| other.recv.is_empty() && !other.honest);
            qp.cqs.is_some() && qp.state == QpState::Rts && !qp.send.is_empty() && waits
        })
    })
}

/// What the other end of a queue pair has exposed: rkey, address and length of each region.
pub(crate) fn exposed_to(number: u32) -> Vec<(u32, u64, u64)> {
    fabric(|f| {
        let other = f.qps.get(&number).and_then(|qp| qp.other);
        let pd = other.and_then(|other| f.qps.get(&other)).map(|qp| qp.pd);
        let regions = f.mrs.values().filter(|mr| Some(mr.pd) == pd);
        let valid = regions.filter_map(|mr| mr.valid.as_ref());
        valid
            .map(|valid| (valid.rkey, valid.iova, valid.length))
            .collect()
    })
}

/// Registers memory; returns its rkey and its address.
pub(crate) fn peer_register(number: u32, bytes: Vec<u8>, write: bool) -> (u32, u64) {
    let iova = sched::random() >> 2;
    fabric(|f| {
        let pd = f.qp(number).pd;
        let mr = super::fabric::number(f);
        let access = if write {
            ib_access_flags_IB_ACCESS_REMOTE_WRITE
        } else {
            ib_access_flags_IB_ACCESS_REMOTE_READ
        };
        let valid = Valid {
            rkey: mr << 8 | 1,
            iova,
            length: bytes.len() as u64,
            access: access as c_int,
            memory: Memory::Owned(bytes),
            written: false,
        };
        f.mrs.insert(
            mr,
            Mr {
                pd,
                segments: Vec::new(),
                valid: Some(valid),
                kept: Vec::new(),
                of_core: false,
            },
        );
        (mr << 8 | 1, iova)
    })
}

/// Whether a peer can still be reached by this rkey.
pub(crate) fn is_valid(rkey: u32) -> bool {
    fabric(|f| f.mrs.get(&(rkey >> 8)).is_some_and(|mr| mr.valid.is_some()))
}

/// The content of a region of the stage.
pub(crate) fn peer_content(rkey: u32) -> Vec<u8> {
    fabric(|f| {
        let mr = f.mrs.get(&(rkey >> 8)).expect("a region");
        match &mr.valid {
            Some(Valid {
                memory: Memory::Owned(bytes),
                ..
            }) => bytes.clone(),
            _ => mr.kept.clone(),
        }
    })
}

/// Frees a region.
pub(crate) fn peer_free(rkey: u32) {
    fabric(|f| f.mrs.remove(&(rkey >> 8)));
}
