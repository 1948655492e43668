// SPDX-License-Identifier: GPL-2.0

//! What either end makes of a device's limits, compiled on the build host: no real device has all
//! the limits that are worth a try.

#![allow(dead_code, reason = "only what reckons is used, and that by tests")]

mod client;
mod server;
mod verbs;

use rpcrdma_core::engine;
use rpcrdma_core::wire;

/// Devices of every kind: each limit at its extremes, and where something changes.
#[cfg(test)]
fn devices() -> impl Iterator<Item = verbs::DeviceAttrs> {
    const QUEUES: [u32; 12] = [
        0,
        1,
        4,
        5,
        33,
        34,
        100,
        146,
        1_000,
        4_096,
        32_768,
        i32::MAX as u32,
    ];
    const ELEMENTS: [u32; 5] = [0, 2, 3, 19, i32::MAX as u32];
    const REGIONS: [u32; 11] = [0, 1, 2, 16, 19, 30, 255, 256, 257, 512, u32::MAX];
    const READS: [u32; 4] = [0, 1, 30, i32::MAX as u32];
    let queues = QUEUES
        .into_iter()
        .flat_map(|wr| QUEUES.map(|cqe| (wr, cqe)));
    let others = || {
        ELEMENTS
            .into_iter()
            .flat_map(|elements| REGIONS.map(|pages| (elements, pages)))
            .flat_map(|(elements, pages)| READS.map(|reads| (elements, pages, reads)))
    };
    queues.flat_map(move |(max_qp_wr, max_cqe)| {
        others().map(
            move |(max_send_sge, max_fast_reg_pages, reads)| verbs::DeviceAttrs {
                max_qp_wr,
                max_cqe,
                max_send_sge,
                max_sge_rd: reads,
                max_fast_reg_pages,
                max_qp_rd_atom: reads,
                max_qp_init_rd_atom: reads,
                mem_mgt_extensions: true,
                sg_gaps: false,
                registers_to_read: false,
                registers_all: false,
                supported: true,
            },
        )
    })
}
