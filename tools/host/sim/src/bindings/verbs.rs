// SPDX-License-Identifier: GPL-2.0

//! Verbs: what the device is, domains, completion queues and memory regions.

use core::ffi::c_void;
use std::collections::VecDeque;

use kernel::ffi::{c_char, c_int, c_uint};
use kernel::sched;

use super::fabric::*;
use super::*;

/// The server's device has a NUMA node, the client's is virtual.
pub(crate) unsafe extern "C" fn rpcrdma_ibdev_to_node(dev: *mut ib_device) -> c_int {
    if dev == device() {
        1
    } else {
        -1
    }
}

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
    let domain = unsafe { (*pd).number };
    let too_many = fabric(|f| {
        let made = f.mrs.values().filter(|mr| mr.pd == domain).count();
        f.device.few_mrs > 0 && made >= f.device.few_mrs
    });
    if too_many {
        return kernel::error::code::ENOMEM.to_ptr();
    }
    fabric(|f| {
        let number = number(f);
        f.mrs.insert(
            number,
            Mr {
                pd: domain,
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
