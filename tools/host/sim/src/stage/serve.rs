// SPDX-License-Identifier: GPL-2.0

//! The world of plays in which peers of the stage talk to the server.

use std::rc::Rc;

use kernel::memory;
use kernel::sched::{self, pick, Config};

use super::faults::Faults;
use super::files;
use super::nfsd::Nfsd;
use super::outcome::Seen;
use super::peer::{Manners, Peer};
use super::peer_steps::PeerSteps;
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::dma;
use crate::bindings::fabric::fabric;

/// Peers that keep to the protocol talk to the server.
pub(super) fn serve(config: &Config, draw: impl FnOnce(&mut Faults)) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[8192, 65_536]);
    let credits = pick(&[4, 5, 8, 32, 128]);
    let size = pick(&[1024, 2048, 4096, 8192]);
    let mut faults = Faults::none();
    draw(&mut faults);
    let tunables = vec![
        ("sunrpc/svc_rdma/max_requests", credits),
        ("sunrpc/svc_rdma/max_req_size", size),
        ("sunrpc/svc_rdma/max_reply_size", pick(&[0, 0, 1024, 4096])),
        ("sunrpc/svc_rdma/short_replies", pick(&[0, 1])),
        ("sunrpc/svc_rdma/remote_invalidation", pick(&[0, 1, 1])),
        ("sunrpc/svc_rdma/max_pulled_pages", pick(&[1, 40, 65_536])),
    ];
    // Each Read may need many regions, with three entries each.
    let least = if faults.device.attrs.max_fast_reg_page_list_len < 4 {
        200
    } else {
        0
    };
    faults.device.attrs.max_qp_wr = pick(&[48, 200, 16_384]).max(least) as i32;
    faults.device.attrs.max_send_sge = pick(&[2, 5, 16]) as i32;
    faults.device.attrs.max_sge_rd = pick(&[1, 5, 16]) as i32;
    let world = World {
        device: faults.device,
        tunables,
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let peers: Vec<Rc<Peer>> = (0..pick(&[1, 1, 2, 3]))
        .map(|number| {
            let rpcs = (0..pick(&[3, 10, 40])).map(|n| {
                let xid = (number << 24) + n;
                Rpc::any(xid, payload)
            });
            let manners = Manners {
                credits: pick(&[1, 3, 16, 64]),
                ..faults.manners
            };
            Rc::new(Peer::new(manners, nfsd.clone(), rpcs.collect()))
        })
        .collect();
    world::begin(config, world, nfsd)?;
    for peer in &peers {
        sched::add_source(Rc::new(PeerSteps(peer.clone())));
    }
    memory::fail_one_in(faults.allocations);
    dma::fail_maps(faults.mappings);
    let failed = memory::failed();
    let is_done = || peers.iter().all(|peer| peer.is_done());
    // With faults, for a while; then all is well again, and everything has to come to an end.
    sched::run(20_000, is_done)?;
    memory::fail_one_in(0);
    dma::fail_maps(0);
    fabric(|f| {
        f.device.refuses = 0;
        f.device.few_queues = 0;
        f.device.late = 0;
    });
    for peer in &peers {
        peer.be_well();
    }
    sched::run_until("the peers", is_done).map_err(|why| {
        let waits: Vec<String> = peers.iter().map(|peer| peer.waits_for()).collect();
        format!("{why}; peers wait for {waits:?}")
    })?;
    let denied = fabric(|f| core::mem::take(&mut f.denied));
    if !denied.is_empty() {
        return Err(format!("the server was denied: {denied:?}"));
    }
    let failed = memory::failed() - failed;
    files::at_rest(false)?;
    let mut seen = Seen {
        failed,
        ..Seen::default()
    };
    for peer in &peers {
        peer.close();
        seen.replies += u64::from(peer.replies.get());
        seen.refused += u64::from(peer.refused.get());
        seen.connections += u64::from(peer.connections.get());
    }
    world::end()?;
    seen.steps = sched::steps();
    Ok(seen)
}
