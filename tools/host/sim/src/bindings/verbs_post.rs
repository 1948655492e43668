// SPDX-License-Identifier: GPL-2.0

//! Verbs: work requests are posted, or refused.

use kernel::ffi::c_int;
use kernel::sched;

use super::fabric::*;
use super::*;

/// LOCAL_INVs that the module may post to a device that has none, to find that out: those of all
/// connections that there are by then.
const REFUSED_INV: u32 = 30;

/// How the device fails a post, of which it has not posted the work requests from `at` on.
fn refusal(at: usize, count: usize) -> (usize, Option<usize>) {
    match sched::below(4) {
        // erdma: names the first, although others were posted.
        0 => (at, Some(0)),
        // siw: posts all, and names none. rdmavt: posts none, and names none. The module relies on
        // a driver to do the one or the other.
        1 | 2 => {
            let all = fabric(|f| {
                *f.device
                    .posts_unnamed
                    .get_or_insert_with(|| sched::below(2) == 0)
            });
            (if all { count } else { 0 }, None)
        }
        _ => (at, Some(at)),
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_post_send(
    qp: *mut ib_qp,
    first: *const ib_send_wr,
    bad: *mut *const ib_send_wr,
) -> c_int {
    sched::preempt();
    let number = unsafe { (*qp).qp_num };
    let mut chain = Vec::new();
    let mut next = first;
    while !next.is_null() {
        chain.push(next);
        next = unsafe { (*next).next };
    }
    let is_inv = unsafe { (*first).opcode } == ib_wr_opcode_IB_WR_LOCAL_INV;
    if is_inv && fabric(|f| f.device.lacks_inv) {
        say!("QP {number}: LOCAL_INV is refused");
        let refused = fabric(|f| {
            f.refused_inv += 1;
            f.refused_inv
        });
        if refused > REFUSED_INV {
            sched::fail("a device that has no LOCAL_INV is used again and again");
        }
        unsafe { *bad = first };
        return -(EINVAL as c_int);
    }
    let (refuses, refuses_inv) = fabric(|f| (f.device.refuses, f.device.refuses_inv));
    let refuses_it = sched::one_in(refuses) || is_inv && sched::one_in(refuses_inv);
    let (posted, named) = if refuses_it {
        refusal(sched::below(chain.len()), chain.len())
    } else {
        (chain.len(), Some(chain.len()))
    };
    for wr in &chain[..posted] {
        let wqe = unsafe { to_wqe(*wr) };
        let full = fabric(|f| {
            let qp = f.qp(number);
            qp.used += 1;
            let most = qp.cap.max_send_wr as usize;
            let sges = wqe.sges.len() > qp.cap.max_send_sge as usize;
            qp.send.push_back(wqe);
            (qp.used > most, sges, most)
        });
        match full {
            (true, _, most) => sched::fail(format_args!("the Send Queue of {most} overflows")),
            (_, true, _) => sched::fail("a work request has too many SGEs"),
            _ => {}
        }
    }
    let result = if named == Some(chain.len()) {
        0
    } else {
        say!(
            "QP {number}: of {} work requests {posted} are posted, {named:?}",
            chain.len()
        );
        let name = named.map_or(core::ptr::null(), |at| chain[at]);
        unsafe { *bad = name };
        -(ENOMEM as c_int)
    };
    sched::preempt();
    result
}

unsafe fn to_wqe(wr: *const ib_send_wr) -> Wqe {
    let raw = unsafe { &*wr };
    let remote = || unsafe { &*wr.cast::<ib_rdma_wr>() };
    let op = match raw.opcode {
        ib_wr_opcode_IB_WR_SEND if sched::one_in(fabric(|f| f.device.stalls_sends)) => {
            Op::StalledSend
        }
        ib_wr_opcode_IB_WR_SEND => Op::Send { invalidate: None },
        ib_wr_opcode_IB_WR_SEND_WITH_INV => Op::Send {
            invalidate: Some(unsafe { *raw.ex.invalidate_rkey.as_ref() }),
        },
        ib_wr_opcode_IB_WR_RDMA_WRITE => Op::Write {
            addr: remote().remote_addr,
            rkey: remote().rkey,
        },
        ib_wr_opcode_IB_WR_RDMA_READ if sched::one_in(fabric(|f| f.device.stalls_reads)) => {
            Op::StalledRead
        }
        ib_wr_opcode_IB_WR_RDMA_READ => Op::Read {
            addr: remote().remote_addr,
            rkey: remote().rkey,
        },
        ib_wr_opcode_IB_WR_LOCAL_INV => Op::Invalidate {
            rkey: unsafe { *raw.ex.invalidate_rkey.as_ref() },
        },
        ib_wr_opcode_IB_WR_REG_MR => {
            let reg = unsafe { &*wr.cast::<ib_reg_wr>() };
            let mr = unsafe { &*reg.mr };
            let number = mr.rkey >> 8;
            let segments = fabric(|f| f.mrs[&number].segments.clone());
            let first = segments.first().map_or(0, |(bus, _)| *bus);
            // ocrdma_build_reg(): `fbo`, whose high half the device ignores.
            if fabric(|f| f.device.begins_by_address) && mr.iova as u32 != first as u32 {
                sched::fail("a region begins elsewhere for a device that goes by its address");
            }
            Op::Register {
                mr: number,
                valid: Valid {
                    rkey: reg.key,
                    iova: mr.iova,
                    length: mr.length,
                    access: reg.access,
                    memory: Memory::Mapped(segments),
                    written: false,
                },
            }
        }
        other => panic!("opcode {other}"),
    };
    let sges = (0..raw.num_sge as usize).map(|i| {
        let sge = unsafe { &*raw.sg_list.add(i) };
        (sge.addr, sge.length)
    });
    let mut sges: Vec<(u64, u32)> = sges.collect();
    let mut sink = None;
    if matches!(op, Op::Read { .. }) && fabric(|f| f.device.iwarp) {
        assert_eq!(sges.len(), 1, "a Read over iWARP has one sink");
        let stag = unsafe { (*raw.sg_list).lkey };
        let (addr, len) = sges.remove(0);
        sink = Some(Sink { stag, addr, len });
    }
    Wqe {
        op,
        sges,
        sink,
        bytes: Vec::new(),
        signaled: raw.send_flags & ib_send_flags_IB_SEND_SIGNALED != 0,
        cqe: unsafe { *raw.__bindgen_anon_1.wr_cqe.as_ref() },
        result: None,
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_post_recv(
    qp: *mut ib_qp,
    first: *const ib_recv_wr,
    bad: *mut *const ib_recv_wr,
) -> c_int {
    sched::preempt();
    let number = unsafe { (*qp).qp_num };
    let refuses = fabric(|f| f.device.refuses);
    let mut next = first;
    while !next.is_null() {
        if sched::one_in(refuses) {
            say!("QP {number}: a Receive is refused");
            unsafe { *bad = next };
            return -(ENOMEM as c_int);
        }
        let wr = unsafe { &*next };
        let sge = unsafe { &*wr.sg_list };
        let recv = RecvWqe {
            sge: (sge.addr, sge.length),
            cqe: unsafe { *wr.__bindgen_anon_1.wr_cqe.as_ref() },
        };
        let full = fabric(|f| {
            let qp = f.qp(number);
            qp.recv.push_back(recv);
            qp.recv.len() > qp.cap.max_recv_wr as usize
        });
        if full {
            sched::fail("the Receive Queue overflows");
        }
        next = wr.next;
    }
    sched::preempt();
    0
}
