// SPDX-License-Identifier: GPL-2.0

//! `nfsrdma doctor`: whether a machine is fit for NFS over RDMA. Each rule looks at the
//! [`Snapshot`] and says what it finds.

use crate::{
    finding::{apply, Finding, Rule},
    model::snapshot::Snapshot,
};

mod devices;
mod messages;
mod module;
mod network;
mod server;
mod settings;

pub use devices::RULES as DEVICES;
pub use messages::RULES as MESSAGES;
pub use module::RULES as MODULE;
pub use network::RULES as NETWORK;
pub use server::RULES as SERVER;
pub use settings::RULES as SETTINGS;

pub(crate) use devices::ports_down;
pub(crate) use messages::{address as address_of_message, messages};
pub(crate) use network::{jumbo, short_packets};

/// What the rules of one subject found.
#[derive(Debug, serde::Serialize)]
pub struct Chapter {
    /// The subject.
    pub title: &'static str,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// The rules, by subject.
pub const CHAPTERS: &[(&str, &[Rule<Snapshot>])] = &[
    ("Module", MODULE),
    ("Kernel log", MESSAGES),
    ("Devices", DEVICES),
    ("Network", NETWORK),
    ("Server", SERVER),
    ("Settings", SETTINGS),
];

/// Applies all rules.
pub fn examine(snapshot: &Snapshot) -> Vec<Chapter> {
    let each = CHAPTERS.iter().map(|&(title, rules)| Chapter {
        title,
        findings: apply(rules, snapshot),
    });
    each.filter(|chapter| !chapter.findings.is_empty())
        .collect()
}
