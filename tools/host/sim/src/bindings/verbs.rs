// SPDX-License-Identifier: GPL-2.0

//! Verbs: domains, completion queues, queue pairs, memory regions, and posting.

use core::ffi::c_void;
use std::collections::VecDeque;

use kernel::ffi::{c_char, c_int, c_uint};
use kernel::sched;

use super::fabric::*;
use super::iwarp_law::Sink;
use super::*;

pub(crate) unsafe extern "C" fn rpcrdma_protocol_iwarp(_dev: *const ib_device, _port: u32) -> bool {
    fabric(|f| f.device.iwarp)
}

pub(crate) unsafe extern "C" fn rpcrdma_ib_or_roce(_dev: *const ib_device, _port: u32) -> bool {
    !fabric(|f| f.device.iwarp)
}

pub(crate) unsafe extern "C" fn __ib_alloc_pd(
    dev: *mut ib_device,
    _flags: c_uint,
    _caller: *const c_char,
) -> *mut ib_pd {
    kernel::lockdep::might_sleep("ib_alloc_pd()");
    hotplug::opening(dev);
    let number = fabric(|f| {
        let number = number(f);
        f.pds.push(number);
        f.owners.insert(number, dev.addr());
        number
    });
    Box::into_raw(Box::new(ib_pd {
        device: dev,
        local_dma_lkey: 7,
        number,
    }))
}

pub(crate) unsafe extern "C" fn ib_dealloc_pd_user(pd: *mut ib_pd, _udata: *mut c_void) -> c_int {
    let number = unsafe { (*pd).number };
    let used = fabric(|f| {
        f.pds.retain(|other| *other != number);
        f.owners.remove(&number);
        f.qps.values().any(|qp| qp.pd == number) || f.mrs.values().any(|mr| mr.pd == number)
    });
    if used {
        sched::fail("a protection domain is freed that is in use");
    }
    drop(unsafe { Box::from_raw(pd) });
    0
}

pub(crate) unsafe extern "C" fn __ib_alloc_cq_any(
    dev: *mut ib_device,
    context: *mut c_void,
    entries: c_int,
    _poll: c_uint,
    _caller: *const c_char,
) -> *mut ib_cq {
    let too_many = fabric(|f| entries > f.device.attrs.max_cqe);
    if entries <= 0 || too_many {
        return kernel::error::code::EINVAL.to_ptr();
    }
    fabric(|f| {
        let number = number(f);
        let raw = Box::into_raw(Box::new(ib_cq {
            cq_context: context,
            res: rdma_restrack_entry { id: number },
            number,
        }));
        let cq = Cq {
            raw,
            capacity: entries as usize,
            queue: VecDeque::new(),
            busy: false,
        };
        f.cqs.insert(number, cq);
        f.owners.insert(number, dev.addr());
        raw
    })
}

pub(crate) unsafe extern "C" fn ib_free_cq(cq: *mut ib_cq) {
    kernel::lockdep::might_sleep("ib_free_cq()");
    let number = unsafe { (*cq).number };
    while fabric(|f| f.cqs[&number].busy) {
        sched::wait_on(worker_key(number));
    }
    let used = fabric(|f| {
        f.cqs.remove(&number);
        f.owners.remove(&number);
        let uses = |qp: &Qp| {
            qp.cqs
                .is_some_and(|(send, recv)| send == number || recv == number)
        };
        f.qps.values().any(uses)
    });
    if used {
        sched::fail("a completion queue is freed that a queue pair uses");
    }
    drop(unsafe { Box::from_raw(cq) });
}

/// `rdma_create_qp()`, but for the `cm_id`.
pub(crate) unsafe fn create_qp(
    pd: *mut ib_pd,
    attr: &mut ib_qp_init_attr,
) -> Result<*mut ib_qp, c_int> {
    let limits = fabric(|f| f.device);
    let most = limits.attrs.max_qp_wr as c_uint;
    if attr.cap.max_send_wr > most || attr.cap.max_recv_wr > most || attr.cap.max_send_wr == 0 {
        return Err(-(EINVAL as c_int));
    }
    if attr.cap.max_send_sge > limits.attrs.max_send_sge as c_uint {
        return Err(-(EINVAL as c_int));
    }
    if sched::one_in(limits.few_queues) {
        say!("no queue pair of {} entries", attr.cap.max_send_wr);
        return Err(-(ENOMEM as c_int));
    }
    let mut pool = Vec::new();
    if limits.iwarp {
        // rdma_rw_init_qp(), which the core calls before the device, and rdma_rw_init_mrs().
        let contexts = attr.cap.max_rdma_ctxs;
        attr.cap.max_send_wr = (attr.cap.max_send_wr + 3 * contexts).min(most);
        pool = rw_mr::init_mrs(pd, contexts).map_err(|error| error.to_errno())?;
    }
    Ok(fabric(|f| {
        let number = number(f);
        let raw = Box::into_raw(Box::new(ib_qp {
            device: unsafe { (*pd).device },
            qp_num: number,
        }));
        let cqs = unsafe { ((*attr.send_cq).number, (*attr.recv_cq).number) };
        let qp = Qp {
            pd: unsafe { (*pd).number },
            state: QpState::Init,
            other: None,
            send: VecDeque::new(),
            recv: VecDeque::new(),
            used: 0,
            unretired: 0,
            cap: attr.cap,
            cqs: Some(cqs),
            raw,
            event: attr.event_handler,
            context: attr.qp_context,
            inbox: VecDeque::new(),
            honest: true,
            accepted: false,
            heard: false,
            regions: pool.len(),
            pool,
        };
        f.qps.insert(number, qp);
        raw
    }))
}

/// The SGEs of a Send.
pub(crate) fn qp_sges(number: u32) -> usize {
    fabric(|f| f.qp(number).cap.max_send_sge as usize)
}

pub(crate) unsafe fn destroy_qp(raw: *mut ib_qp) {
    let number = unsafe { (*raw).qp_num };
    let qp = fabric(|f| f.qps.remove(&number).expect("a queue pair"));
    let posted = qp.send.len() + qp.recv.len();
    if posted > 0 {
        sched::fail(format_args!(
            "QP {number} is destroyed with {posted} work requests"
        ));
    }
    if qp.pool.len() != qp.regions {
        sched::fail(format_args!(
            "QP {number} is destroyed, and {} of its {} regions are in use",
            qp.regions - qp.pool.len(),
            qp.regions
        ));
    }
    rw_mr::cleanup_mrs(qp.pool);
    drop(unsafe { Box::from_raw(raw) });
}

pub(crate) unsafe extern "C" fn ib_modify_qp(
    qp: *mut ib_qp,
    attr: *mut ib_qp_attr,
    _mask: c_int,
) -> c_int {
    kernel::lockdep::might_sleep("ib_modify_qp()");
    let (number, state) = unsafe { ((*qp).qp_num, (*attr).qp_state) };
    assert_eq!(state, ib_qp_state_IB_QPS_ERR);
    fabric(|f| f.set_error(number));
    sched::preempt();
    0
}

/// The device reports an error of a queue pair.
pub(crate) fn report(number: u32, code: c_uint) {
    let handler = fabric(|f| f.qps.get(&number).map(|qp| (qp.event, qp.context)));
    if let Some((Some(event), context)) = handler {
        sched::no_sleep("in hard IRQ context", || {
            let mut raw = ib_event { event: code };
            // SAFETY: The context stays as long as the queue pair.
            sched::module_code(|| unsafe { event(&mut raw, context) });
        });
    }
}

/// How the device fails a post, of which it has not posted the work requests from `at` on.
fn refusal(at: usize, count: usize) -> (usize, Option<usize>) {
    match sched::below(4) {
        // erdma: names the first, although others were posted.
        0 => (at, Some(0)),
        // siw: posts all, and names none.
        1 => (count, None),
        // rdmavt: posts none, and names none.
        2 => (0, None),
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
    let refuses = fabric(|f| f.device.refuses);
    let (posted, named) = if sched::one_in(refuses) {
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
        ib_wr_opcode_IB_WR_SEND => Op::Send { invalidate: None },
        ib_wr_opcode_IB_WR_SEND_WITH_INV => Op::Send {
            invalidate: Some(unsafe { *raw.ex.invalidate_rkey.as_ref() }),
        },
        ib_wr_opcode_IB_WR_RDMA_WRITE => Op::Write {
            addr: remote().remote_addr,
            rkey: remote().rkey,
        },
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
            Op::Register {
                mr: number,
                valid: Valid {
                    rkey: reg.key,
                    iova: mr.iova,
                    length: mr.length,
                    access: reg.access,
                    memory: Memory::Mapped(segments),
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

#[repr(C)]
struct Marker {
    cqe: ib_cqe,
    done: core::cell::Cell<bool>,
}

unsafe extern "C" fn drained(_cq: *mut ib_cq, wc: *mut ib_wc) {
    unsafe {
        let marker = (*(*wc).__bindgen_anon_1.wr_cqe.as_ref()).cast::<Marker>();
        (*marker).done.set(true);
        sched::wake(marker.addr());
    }
}

fn drain(qp: *mut ib_qp, post: impl FnOnce(&mut Qp, *mut ib_cqe)) {
    kernel::lockdep::might_sleep("a drain");
    let number = unsafe { (*qp).qp_num };
    fabric(|f| f.set_error(number));
    sched::preempt();
    let mut marker = Marker {
        cqe: ib_cqe {
            done: Some(drained),
        },
        done: core::cell::Cell::new(false),
    };
    let raw = &raw mut marker;
    let full = fabric(|f| {
        let qp = f.qp(number);
        post(qp, raw.cast());
        qp.used > qp.cap.max_send_wr as usize || qp.recv.len() > qp.cap.max_recv_wr as usize
    });
    if full {
        sched::fail("there is no room for the marker of a drain");
    }
    // SAFETY: The marker is on this stack.
    while !unsafe { (*raw).done.get() } {
        sched::wait_on(raw.addr());
    }
}

pub(crate) unsafe extern "C" fn ib_drain_sq(qp: *mut ib_qp) {
    drain(qp, |qp, cqe| {
        qp.used += 1;
        qp.send.push_back(Wqe {
            op: Op::Drain,
            sges: Vec::new(),
            sink: None,
            bytes: Vec::new(),
            signaled: true,
            cqe,
            result: None,
        });
    });
}

pub(crate) unsafe extern "C" fn ib_drain_rq(qp: *mut ib_qp) {
    drain(qp, |qp, cqe| {
        qp.recv.push_back(RecvWqe { sge: (0, 0), cqe })
    });
}

pub(crate) unsafe extern "C" fn ib_alloc_mr(
    pd: *mut ib_pd,
    _kind: c_uint,
    depth: u32,
) -> *mut ib_mr {
    kernel::lockdep::might_sleep("ib_alloc_mr()");
    let most = fabric(|f| f.device.attrs.max_fast_reg_page_list_len);
    if depth > most {
        return kernel::error::code::EINVAL.to_ptr();
    }
    if kernel::memory::fails(kernel::alloc::flags::GFP_KERNEL, "a memory region") {
        return kernel::error::code::ENOMEM.to_ptr();
    }
    fabric(|f| {
        let number = number(f);
        f.mrs.insert(
            number,
            Mr {
                pd: unsafe { (*pd).number },
                segments: Vec::new(),
                valid: None,
                kept: Vec::new(),
                of_core: false,
            },
        );
        Box::into_raw(Box::new(ib_mr {
            lkey: number << 8,
            rkey: number << 8,
            iova: 0,
            length: 0,
            res: rdma_restrack_entry { id: number },
        }))
    })
}

pub(crate) unsafe extern "C" fn ib_dereg_mr_user(mr: *mut ib_mr, _udata: *mut c_void) -> c_int {
    let number = unsafe { (*mr).rkey >> 8 };
    let reachable = fabric(|f| {
        let mr = f.mrs.remove(&number).expect("a region");
        let can = f
            .qps
            .values()
            .any(|qp| qp.pd == mr.pd && qp.state == QpState::Rts);
        mr.valid.is_some() && can
    });
    if reachable {
        sched::fail("a region is freed that the peer can reach");
    }
    drop(unsafe { Box::from_raw(mr) });
    0
}

pub(crate) unsafe extern "C" fn ib_map_mr_sg(
    mr: *mut ib_mr,
    list: *mut scatterlist,
    count: c_int,
    _offset: *mut c_uint,
    page_size: c_uint,
) -> c_int {
    let size = u64::from(page_size);
    let mut segments: Vec<(u64, u32)> = Vec::new();
    for i in 0..count as usize {
        let entry = unsafe { &*list.add(i) };
        let gap = segments.last().is_some_and(|(bus, len)| {
            (bus + u64::from(*len)) % size != 0 || entry.dma_address % size != 0
        });
        if gap {
            break;
        }
        segments.push((entry.dma_address, entry.dma_length));
    }
    let covered = segments.len() as c_int;
    unsafe {
        (*mr).iova = segments.first().map_or(0, |(bus, _)| *bus);
        (*mr).length = length(&segments) as u64;
        let number = (*mr).rkey >> 8;
        let valid = fabric(|f| {
            let mr = f.mrs.get_mut(&number).expect("a region");
            mr.segments = segments;
            mr.valid.is_some()
                && f.qps
                    .values()
                    .any(|qp| qp.pd == f.mrs[&number].pd && qp.state == QpState::Rts)
        });
        if valid {
            sched::fail("a region is mapped that the peer can reach");
        }
    }
    covered
}
