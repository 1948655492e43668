// SPDX-License-Identifier: GPL-2.0

//! What happened between two samples.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sample::{Credits, Sample};
use crate::source::mountstats::Op;

/// Rates between two samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Milliseconds since 1970, at the second sample.
    pub time_ms: u64,
    /// Seconds between the samples.
    pub seconds: f64,
    /// By the directory of the mount.
    pub mounts: BTreeMap<String, MountRates>,
    /// Credits of the client's connections at the second sample.
    pub client: BTreeMap<String, Credits>,
    /// Credits of the server's connections at the second sample.
    pub server: BTreeMap<String, Credits>,
    /// The server's totals, a second.
    pub totals: BTreeMap<String, f64>,
}

/// Rates of a mount, a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MountRates {
    /// RPCs.
    pub operations: f64,
    /// Bytes that READs returned, with their headers.
    pub read_bytes: f64,
    /// Bytes that WRITEs carried, with their headers.
    pub written_bytes: f64,
    /// Calls that were sent again.
    pub retransmissions: f64,
    /// Those that were used in between, by name.
    pub ops: BTreeMap<String, OpRates>,
}

/// Rate and times of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OpRates {
    /// RPCs a second.
    pub operations: f64,
    /// Milliseconds from the send of a Call to its Reply, on average.
    pub rtt_ms: f64,
    /// Milliseconds that a Call waited to be sent, on average.
    pub queue_ms: f64,
    /// Milliseconds of the whole RPC, on average.
    pub total_ms: f64,
}

impl Rates {
    /// Rates from `old` to `new`. `None` if no time has passed.
    pub fn between(old: &Sample, new: &Sample) -> Option<Self> {
        let ms = new.time_ms.checked_sub(old.time_ms).filter(|&ms| ms > 0)?;
        let seconds = ms as f64 / 1000.0;
        let mounts = new.mounts.iter().map(|(target, ops)| {
            let before = old.mounts.get(target).map_or(&[][..], Vec::as_slice);
            (target.clone(), mount(before, ops, seconds))
        });
        let totals = new.totals.iter().map(|(name, &value)| {
            let before = old.totals.get(name).copied().unwrap_or(value);
            (name.clone(), grown(before, value) as f64 / seconds)
        });
        Some(Self {
            time_ms: new.time_ms,
            seconds,
            mounts: mounts.collect(),
            client: new.client.clone(),
            server: new.server.clone(),
            totals: totals.collect(),
        })
    }
}

/// How much a counter has grown. After a reset or a new mount it starts at zero.
fn grown(old: u64, new: u64) -> u64 {
    new.checked_sub(old).unwrap_or(new)
}

fn mount(old: &[Op], new: &[Op], seconds: f64) -> MountRates {
    let mut rates = MountRates::default();
    let unused = Op::default();
    for op in new {
        let before = old
            .iter()
            .find(|each| each.name == op.name)
            .unwrap_or(&unused);
        let count = grown(before.operations, op.operations);
        let sent = grown(before.transmissions, op.transmissions);
        rates.operations += count as f64 / seconds;
        rates.retransmissions += sent.saturating_sub(count) as f64 / seconds;
        if op.name == "READ" {
            rates.read_bytes = grown(before.bytes_received, op.bytes_received) as f64 / seconds;
        }
        if op.name == "WRITE" {
            rates.written_bytes = grown(before.bytes_sent, op.bytes_sent) as f64 / seconds;
        }
        if count == 0 {
            continue;
        }
        let average = |old, new| grown(old, new) as f64 / count as f64;
        let op_rates = OpRates {
            operations: count as f64 / seconds,
            rtt_ms: average(before.rtt_ms, op.rtt_ms),
            queue_ms: average(before.queue_ms, op.queue_ms),
            total_ms: average(before.total_ms, op.total_ms),
        };
        rates.ops.insert(op.name.clone(), op_rates);
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time_ms: u64, reads: u64) -> Sample {
        let op = Op {
            name: "READ".to_string(),
            operations: reads,
            transmissions: reads + 2,
            bytes_received: reads * 1000,
            rtt_ms: reads * 3,
            queue_ms: reads,
            total_ms: reads * 5,
            ..Op::default()
        };
        Sample {
            time_ms,
            mounts: [("/mnt".to_string(), vec![op])].into(),
            totals: [("recv".to_string(), reads)].into(),
            ..Sample::default()
        }
    }

    #[test]
    fn rates_are_per_second() {
        let rates = Rates::between(&sample(1000, 10), &sample(3000, 30)).unwrap();
        let mount = &rates.mounts["/mnt"];
        assert_eq!(mount.operations, 10.0);
        assert_eq!(mount.read_bytes, 10_000.0);
        assert_eq!(mount.retransmissions, 0.0);
        assert_eq!(mount.ops["READ"].rtt_ms, 3.0);
        assert_eq!(mount.ops["READ"].queue_ms, 1.0);
        assert_eq!(mount.ops["READ"].total_ms, 5.0);
        assert_eq!(rates.totals["recv"], 10.0);
    }

    #[test]
    fn counters_that_were_reset_start_at_zero() {
        let rates = Rates::between(&sample(0, 100), &sample(1000, 5)).unwrap();
        assert_eq!(rates.mounts["/mnt"].operations, 5.0);
        assert_eq!(rates.totals["recv"], 5.0);
    }

    #[test]
    fn no_time_no_rates() {
        assert_eq!(Rates::between(&sample(5, 1), &sample(5, 2)), None);
        assert_eq!(Rates::between(&sample(6, 1), &sample(5, 2)), None);
    }
}
