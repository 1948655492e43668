// SPDX-License-Identifier: GPL-2.0

//! Plays with callbacks, signals, timeouts, pulled Replies, devices that are removed, and iWARP.

use kernel::sched::{below, pick, Config};

use super::callbacks::Calls;
use super::nfsd::NfsdOptions;
use super::outcome::Seen;
use super::serve::serve;
use super::talk::talk;
use crate::bindings::fabric::{Device, Grants};
use crate::bindings::rpc::Manner;
use crate::bindings::{RPC_TASK_NO_RETRANS_TIMEOUT, RPC_TASK_SOFT, RPC_TASK_SOFTCONN};

fn grants() -> Grants {
    [Grants::AsSent, Grants::Any, Grants::One][below(3)]
}

pub(super) fn both_ends_call(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        let broken = below(2) == 0;
        if broken {
            faults.manners.breaks_off = pick(&[0, 0, 3, 10]);
            faults.device.refuses = pick(&[0, 0, 100, 500]);
        }
        faults.tunables = vec![
            ("sunrpc/rdma_slot_table_entries", pick(&[4, 4, 128])),
            ("sunrpc/rdma_max_bc_requests", pick(&[1, 1, 4, 16])),
            ("sunrpc/svc_rdma/max_bc_requests", pick(&[2, 16])),
        ];
        faults.signals = pick(&[0, 0, 10]);
        faults.device.grants = grants();
        faults.stands = pick(&[0, 2, 5]);
        faults.idle = below(4) == 0;
        let patient = below(3) == 0;
        faults.calls = Some(Calls {
            rounds: pick(&[3, 10]),
            calls: pick(&[1, 8, 40]),
            drops: if broken && !patient {
                pick(&[0, 4, 20])
            } else {
                0
            },
            late: if broken { pick(&[0, 4, 20]) } else { 0 },
            long: pick(&[0, 0, 2]),
            gives_up: pick(&[0, 1, 2]),
            timeout: if patient { 0 } else { pick(&[500, 9000]) },
        });
    })
}

pub(super) fn both_ends_give_up(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        let soft = RPC_TASK_SOFT;
        faults.tasks = Manner {
            timeout: pick(&[0, 200, 5000, 60_000]),
            retries: pick(&[0, 2]),
            flags: [
                0,
                soft,
                RPC_TASK_NO_RETRANS_TIMEOUT,
                soft | RPC_TASK_NO_RETRANS_TIMEOUT,
                soft | RPC_TASK_SOFTCONN | RPC_TASK_NO_RETRANS_TIMEOUT,
            ][below(5)],
            late: pick(&[0, 3]),
        };
        let pulled = pick(&[0, 0, 1]);
        faults
            .tunables
            .push(("sunrpc/svc_rdma/pulled_replies", pulled));
        faults.nfsd = NfsdOptions {
            late: pick(&[0, 3, 10]),
            late_ms: pick(&[10, 500, 20_000]),
            ineligible: 0,
            // With other flags, call_encode() encodes a Call again even if another task has sent it
            // on the new connection since the owner found the old one lost.
            sent_once: pulled == 0 && faults.tasks.flags & RPC_TASK_NO_RETRANS_TIMEOUT != 0,
        };
        faults.device.grants = grants();
        faults.kills = pick(&[0, 2, 10]);
        // A killed task invalidates its memory by itself.
        faults.device.refuses_inv = pick(&[0, 0, 2]);
        faults.signals = pick(&[0, 0, 10]);
        faults.manners.breaks_off = pick(&[0, 0, 10]);
    })
}

/// Sends find no Receive for ever, and tasks behind them are killed.
pub(super) fn both_ends_stall(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.tasks = Manner {
            timeout: 60_000,
            retries: 2,
            ..Manner::PATIENT
        };
        faults.kills = pick(&[1, 2]);
        faults.device.stalls_sends = pick(&[5, 20]);
    })
}

pub(super) fn both_ends_pull(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.tunables = vec![
            ("sunrpc/svc_rdma/pulled_replies", 1),
            ("sunrpc/rdma_pulled_replies", pick(&[1, 2])),
            ("sunrpc/svc_rdma/max_req_size", 1024),
        ];
        if below(4) == 0 {
            // Replies expire while their RDMA_DONEs wait for a thread.
            (faults.nfsd.late, faults.nfsd.late_ms) = (pick(&[2, 4]), 60_000);
            return;
        }
        if below(3) == 0 {
            faults.tunables.push(("sunrpc/svc_rdma/exposed_seconds", 1));
            faults.device.late = pick(&[5, 20]);
        }
        faults.device.stalls_reads = pick(&[0, 0, 20]);
        faults.nfsd.ineligible = pick(&[0, 2, 5]);
        faults.manners.breaks_off = pick(&[0, 0, 5]);
        faults.device.refuses = pick(&[0, 0, 100]);
        faults.kills = pick(&[0, 0, 3]);
        faults.allocations = pick(&[0, 0, 300]);
    })
}

pub(super) fn both_ends_lose_devices(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.unplugs = pick(&[3, 10, 30]);
        faults.openings = pick(&[0, 2, 5]);
        faults.moves = pick(&[0, 5, 20]);
        faults.threads_late = pick(&[0, 0, 300]);
        faults.kills = pick(&[0, 0, 10]);
        faults.device.refuses = pick(&[0, 0, 100]);
    })
}

pub(super) fn server_uses_iwarp(config: &Config) -> Result<Seen, String> {
    serve(config, |faults| {
        faults.device.iwarp = true;
        faults.device.attrs.max_fast_reg_page_list_len = pick(&[2, 4, 16, 256]);
        faults.device.merges = pick(&[0, 1]) == 1;
        faults.device.few_queues = pick(&[0, 2, 2]);
        // A Call may need more regions than there are on a short queue.
        faults.manners.errors = faults.device.few_queues > 0;
        faults.manners.breaks_off = pick(&[0, 0, 50]);
        faults.manners.leaves = pick(&[0, 0, 50]);
    })
}

pub(super) fn both_ends_use_iwarp(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.device.iwarp = true;
        faults.device.attrs.max_fast_reg_page_list_len = pick(&[32, 64, 256]);
        faults.manners.breaks_off = pick(&[0, 0, 5]);
        faults.device.refuses = pick(&[0, 0, 200]);
    })
}

/// A client has fewer MRs than its Calls need at a time.
pub(super) fn both_ends_use_all_mrs(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.large = true;
        faults.tunables.extend([
            ("sunrpc/rdma_slot_table_entries", pick(&[8, 16])),
            ("sunrpc/svc_rdma/max_requests", 32),
        ]);
        faults.device.attrs.max_fast_reg_page_list_len = pick(&[32, 64]);
        faults.manners.breaks_off = pick(&[0, 0, 5]);
        faults.kills = pick(&[0, 0, 10]);
        (faults.nfsd.late, faults.nfsd.late_ms) = (pick(&[0, 3]), 500);
        // One Call needs up to 9 or 13.
        faults.device.few_mrs = pick(&[0, 6, 13, 16]) as usize;
    })
}

/// The devices have bounce buffers: bus addresses have gaps where data ends within a page.
pub(super) fn both_ends_bounce(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.large = true;
        faults.bare = true;
        faults.device.bounces = true;
        faults.tunables.push(("sunrpc/svc_rdma/max_req_size", 4096));
        faults.manners.breaks_off = pick(&[0, 0, 5]);
        // One Call needs up to 6.
        faults.device.few_mrs = pick(&[0, 6]) as usize;
    })
}

/// The devices refuse LOCAL_INV, which they do not report. RPCs end nevertheless.
pub(super) fn both_ends_lack_local_inv(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.device.lacks_inv = true;
        faults
            .tunables
            .push(("sunrpc/svc_rdma/remote_invalidation", pick(&[0, 0, 1])));
    })
}
