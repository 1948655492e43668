// SPDX-License-Identifier: GPL-2.0

//! A play in which clients come and go while one stays, and looks which pages nfsd allocates.

use std::rc::Rc;

use kernel::sched::{self, below, pick, Config};

use super::faults::Faults;
use super::nfsd::Nfsd;
use super::outcome::Seen;
use super::peer::{Manners, Peer};
use super::peer_steps::PeerSteps;
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::{memory, nfsd_rqst, nfsd_threads, rw, svc};

/// The server may leave so many neighbouring pages in descending order.
const MAX_DESCENDING: usize = 6;

/// The array of a transfer's memory.
const RUNS: &str = "[rpcrdma_sim::verbs::rw::run::Run]";
/// The bytes of the largest such array that an idle connection may keep: 32 entries.
const MAX_RUNS: usize = 512;

/// A client that has sent WRITEs stays. Others connect, send a Call, and leave. Laws: the next
/// WRITE finds the pages that the first ones have displaced; the last connection leaves none; no
/// Read is into many pages in descending order; and an idle connection keeps no long array of a
/// transfer's memory.
pub(super) fn server_keeps_spare_pages(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[16_384, 65_536, 262_144]);
    let faults = Faults::none();
    let world = World {
        device: faults.device,
        tunables: Vec::new(),
        // A thread that finds the lock taken would do without spare pages.
        threads: 1,
        payload,
    };
    let manners = Manners {
        credits: pick(&[1, 3, 16]),
        ..faults.manners
    };
    let writes = pick(&[1, 3, 10]);
    let write = |n: u32| Rpc::write(n + 1, payload);
    let stays = Rc::new(Peer::new(
        manners,
        nfsd.clone(),
        (0..writes).map(write).collect(),
    ));
    let leave: Vec<Rc<Peer>> = (1..=pick(&[1, 2, 3]))
        .map(|number| {
            let rpc = Rpc::short().with_xid(number << 24);
            Rc::new(Peer::new(manners, nfsd.clone(), vec![rpc]))
        })
        .collect();
    nfsd_rqst::set_descending(below(2) == 0);
    world::begin(config, world, nfsd)?;
    let all = [&[stays.clone()], &leave[..]].concat();
    sched::add_source(Rc::new(PeerSteps(stays.clone())));
    sched::run_until("the first WRITEs", || stays.is_done())?;
    for peer in &leave {
        let gone = svc::freed() + 1;
        sched::add_source(Rc::new(PeerSteps(peer.clone())));
        sched::run_until("a client that leaves", || peer.is_done())?;
        peer.lose();
        sched::run_until("its connection", || svc::freed() == gone)?;
    }
    let filled = nfsd_rqst::filled();
    stays.queued.borrow_mut().push_back(write(writes));
    sched::run_until("the next WRITE", || stays.is_done())?;
    let filled = nfsd_rqst::filled() - filled;
    // If the whole Call is in a Read chunk, it takes a page more than its data; and the Reply gives
    // a page away if it is in a Reply chunk.
    if filled > 2 {
        return Err(format!("nfsd has allocated {filled} pages for a WRITE"));
    }
    let descending = rw::most_descending();
    if descending > MAX_DESCENDING {
        return Err(format!(
            "a Read is into {descending} pages in descending order"
        ));
    }
    let runs = kernel::memory::largest(RUNS);
    if runs > MAX_RUNS || runs == 0 && payload <= 65_536 {
        return Err(format!(
            "an idle connection keeps {runs} bytes for one transfer"
        ));
    }
    stays.lose();
    let own = nfsd_threads::pages();
    sched::run_until("the last connection", || memory::pages() == own)
        .map_err(|why| format!("{why}; there are {} pages, not {own}", memory::pages()))?;
    let mut seen = Seen::default();
    for peer in &all {
        peer.close();
        seen.replies += u64::from(peer.replies.get());
        seen.refused += u64::from(peer.refused.get());
        seen.connections += u64::from(peer.connections.get());
    }
    world::end()?;
    seen.steps = sched::steps();
    Ok(seen)
}
