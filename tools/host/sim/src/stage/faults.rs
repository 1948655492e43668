// SPDX-License-Identifier: GPL-2.0

//! What a play draws.

use super::callbacks::Calls;
use super::nfsd::NfsdOptions;
use super::peer::Manners;
use crate::bindings::fabric::Device;
use crate::bindings::rpc::Manner;

/// The faults of a play, and what else it draws.
pub(super) struct Faults {
    pub(super) manners: Manners,
    pub(super) device: Device,
    pub(super) allocations: u32,
    pub(super) mappings: u32,
    /// The backchannel Calls of the server.
    pub(super) calls: Option<Calls>,
    /// Each client has one RPC, and none while the server calls it.
    pub(super) idle: bool,
    /// Each client has twelve READs and WRITEs of nearly 1 MiB.
    pub(super) large: bool,
    /// RPCs have their data item and little else.
    pub(super) bare: bool,
    /// How the client's tasks behave.
    pub(super) tasks: Manner,
    /// A signal kills a task at one in so many looks.
    pub(super) kills: u32,
    /// One kills one in so many tasks when its Reply is taken.
    pub(super) signals: u32,
    /// A device is removed at one in so many looks, and an address moves.
    pub(super) unplugs: u32,
    pub(super) moves: u32,
    /// A device is removed when one in so many connections is opened.
    pub(super) openings: u32,
    /// One in so many nfsd threads stands still when it has taken a message.
    pub(super) stands: u32,
    /// The threads of nfsd start so many seconds after the listener.
    pub(super) threads_late: u32,
    pub(super) nfsd: NfsdOptions,
    /// Tunables that are not drawn.
    pub(super) tunables: Vec<(&'static str, u32)>,
}

impl Faults {
    pub(super) fn none() -> Self {
        Self {
            manners: Manners {
                credits: 1,
                breaks_off: 0,
                leaves: 0,
                errors: false,
            },
            device: Device::default(),
            allocations: 0,
            mappings: 0,
            calls: None,
            idle: false,
            large: false,
            bare: false,
            tasks: Manner::PATIENT,
            kills: 0,
            signals: 0,
            unplugs: 0,
            moves: 0,
            openings: 0,
            stands: 0,
            threads_late: 0,
            nfsd: NfsdOptions::default(),
            tunables: Vec::new(),
        }
    }
}
