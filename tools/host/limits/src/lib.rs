// SPDX-License-Identifier: GPL-2.0

//! Tests of how client and server derive their limits from those of a device.
//!
//! The files of the module are compiled on the build host, since the tests need devices with
//! limits that no real device has.

#![allow(dead_code, reason = "the tests use a part of the files")]

mod client;
mod read_mrs;
mod server;
mod tunables;
mod verbs;

use rpcrdma_core::engine;
use rpcrdma_core::wire;
use tunables::lib;
use tunables::sysctl;

/// Devices with each limit at its extremes and at values where a result changes.
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
    const SGES: [u32; 5] = [0, 2, 3, 19, i32::MAX as u32];
    const MR_PAGES: [u32; 11] = [0, 1, 2, 16, 19, 30, 255, 256, 257, 512, u32::MAX];
    const READS: [u32; 4] = [0, 1, 30, i32::MAX as u32];
    let queues = QUEUES
        .into_iter()
        .flat_map(|wr| QUEUES.map(|cqe| (wr, cqe)));
    let others = || {
        SGES.into_iter()
            .flat_map(|sges| MR_PAGES.map(|pages| (sges, pages)))
            .flat_map(|(sges, pages)| READS.map(|reads| (sges, pages, reads)))
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
                refuses_local_inv: false,
                sg_gaps: false,
                registers_to_read: false,
                registers_long_reads: false,
                registers_all: false,
                supported: true,
            },
        )
    })
}
