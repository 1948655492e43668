// SPDX-License-Identifier: GPL-2.0

//! `nfsrdma watch`: tables of rates.

use std::io;

use super::{
    status::amount,
    table::{Cell, Table, LIMIT, PLAIN, TITLE},
};
use crate::model::{rate::Rates, sample::Credits};

/// Prints the rates in tables.
///
/// # Errors
///
/// As of the stream.
pub fn print(out: &mut dyn io::Write, rates: &Rates) -> io::Result<()> {
    let time = rates.time_ms / 1000 % 86_400;
    let (hours, minutes, seconds) = (time / 3600, time / 60 % 60, time % 60);
    writeln!(
        out,
        "{TITLE}{hours:02}:{minutes:02}:{seconds:02} UTC{TITLE:#}, over {:.1} s",
        rates.seconds
    )?;
    let mut mounts = Table::new(&["MOUNT", "RPCS/S", "READ/S", "WRITTEN/S", "AGAIN/S"]);
    let columns = [
        "MOUNT",
        "OPERATION",
        "PER S",
        "WAITED MS",
        "REPLY MS",
        "TOTAL MS",
    ];
    let mut ops = Table::new(&columns);
    for (target, mount) in &rates.mounts {
        let again = mount.retransmissions;
        mounts.row([
            target.clone().into(),
            format!("{:.1}", mount.operations).into(),
            amount(mount.read_bytes).into(),
            amount(mount.written_bytes).into(),
            Cell::from(format!("{again:.1}")).styled(if again > 0.0 { LIMIT } else { PLAIN }),
        ]);
        for (name, op) in &mount.ops {
            ops.row([
                target.clone().into(),
                name.clone().into(),
                format!("{:.1}", op.operations).into(),
                format!("{:.2}", op.queue_ms).into(),
                format!("{:.2}", op.rtt_ms).into(),
                format!("{:.2}", op.total_ms).into(),
            ]);
        }
    }
    for table in [&mounts, &ops, &credits("CLIENT", &rates.client)] {
        if !table.is_empty() {
            table.print(out)?;
        }
    }
    let served = credits("SERVER", &rates.server);
    if !served.is_empty() {
        served.print(out)?;
    }
    let totals = rates.totals.iter().filter(|(_, &rate)| rate > 0.0);
    let total = |(name, &rate): (&String, &f64)| match name.strip_suffix("_bytes") {
        Some(name) => format!("{name} {}/s", amount(rate)),
        None => format!("{name} {rate:.1}/s"),
    };
    let totals: Vec<_> = totals.map(total).collect();
    if !totals.is_empty() {
        writeln!(out, "  server: {}", totals.join(", "))?;
    }
    writeln!(out)
}

fn credits(end: &str, connections: &std::collections::BTreeMap<String, Credits>) -> Table {
    let mut table = Table::new(&[end, "GRANTED", "USED", "WAITING"]);
    for (title, credits) in connections {
        let full = credits.granted > 0 && credits.used >= credits.granted;
        table.row([
            title.clone().into(),
            credits.granted.to_string().into(),
            Cell::from(credits.used.to_string()).styled(if full { LIMIT } else { PLAIN }),
            credits.waiting.to_string().into(),
        ]);
    }
    table
}
