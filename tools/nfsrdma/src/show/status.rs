// SPDX-License-Identifier: GPL-2.0

//! `nfsrdma status`: tables of mounts and connections.

use std::io;

use super::{
    findings::not_known,
    table::{Cell, Table, FAULT, GOOD, LIMIT, TITLE},
};
use crate::{
    doctor,
    finding::Level,
    model::{connection::Connection, snapshot::Snapshot},
    source::module::Module,
};

/// Prints everything in tables.
///
/// # Errors
///
/// As of the stream.
pub fn print(out: &mut dyn io::Write, all: &Snapshot) -> io::Result<()> {
    let module = match &all.module {
        Module::Rust { version } => format!("in Rust, version {version}"),
        Module::C => "in C".to_string(),
        Module::None => "not loaded".to_string(),
    };
    writeln!(
        out,
        "{TITLE}Module{TITLE:#} {module}, kernel {}",
        all.kernel
    )?;
    section(out, "Devices", &devices(all), "none")?;
    section(out, "Mounts", &mounts(all), "none over RDMA")?;
    if all.connections.iter().any(|each| !each.is_backchannel()) {
        section(out, "Connections of the client", &connections(all), "none")?;
    }
    if all.nfsd.is_some() || !all.served.is_empty() {
        server(out, all)?;
    }
    hint(out, all)?;
    not_known(out, &all.missing)
}

fn section(out: &mut dyn io::Write, title: &str, table: &Table, none: &str) -> io::Result<()> {
    writeln!(out, "{TITLE}{title}{TITLE:#}")?;
    if table.is_empty() {
        writeln!(out, "  {none}")
    } else {
        table.print(out)
    }
}

fn devices(all: &Snapshot) -> Table {
    let mut table = Table::new(&["DEVICE", "PORT", "STATE", "RATE", "ON", "MTU"]);
    for device in &all.devices {
        for port in &device.ports {
            let style = if port.state == "ACTIVE" { GOOD } else { FAULT };
            let mtu = port
                .netdevs
                .first()
                .and_then(|netdev| all.network.mtus.get(netdev));
            table.row([
                device.name.clone().into(),
                port.number.to_string().into(),
                Cell::known(&port.state).styled(style),
                Cell::known(&port.rate),
                Cell::known(&port.netdevs.join(",")),
                Cell::number(mtu.map(|&mtu| mtu.into())),
            ]);
        }
    }
    table
}

fn mounts(all: &Snapshot) -> Table {
    let columns = [
        "MOUNT",
        "SERVER",
        "VERS",
        "CONNECTED",
        "RPCS",
        "READ",
        "WRITTEN",
        "LOST",
    ];
    let mut table = Table::new(&columns);
    for mount in &all.mounts {
        let found = all.connections_of(mount);
        let up = found.iter().filter(|each| each.is_connected()).count();
        let connected = match found.len() {
            0 => "-".into(),
            n if n == up => Cell::from(format!("{up} of {n}")).styled(GOOD),
            n => Cell::from(format!("{up} of {n}")).styled(FAULT),
        };
        let op = |name: &str| mount.ops.iter().find(|op| op.name == name);
        let lost = mount.sum(|xprt| xprt.connects.saturating_sub(1).max(0));
        let style = if lost > 0 { LIMIT } else { GOOD };
        table.row([
            mount.target.clone().into(),
            mount.device.clone().into(),
            Cell::known(mount.option("vers").unwrap_or("")),
            connected,
            Cell::number(Some(mount.total(|op| op.operations))),
            amount(op("READ").map_or(0, |op| op.bytes_received) as f64).into(),
            amount(op("WRITE").map_or(0, |op| op.bytes_sent) as f64).into(),
            Cell::number(Some(lost)).styled(style),
        ]);
    }
    table
}

const COLUMNS: [&str; 9] = [
    "ID", "PEER", "OWN", "DEVICE", "STATE", "CREDITS", "WAIT", "INLINE", "CLOSED",
];

fn connections(all: &Snapshot) -> Table {
    let mut table = Table::new(&COLUMNS);
    for connection in all.connections.iter().filter(|each| !each.is_backchannel()) {
        table.row(connection_row(connection));
    }
    table
}

fn connection_row(connection: &Connection) -> [Cell; 9] {
    let detail = &connection.detail;
    let style = if connection.is_connected() {
        GOOD
    } else {
        FAULT
    };
    let credits = match (connection.used(), connection.granted()) {
        (Some(used), Some(granted)) => format!("{used}/{granted}"),
        _ => "-".to_string(),
    };
    let inline = match (
        detail.text("inline_send_bytes"),
        detail.text("inline_recv_bytes"),
    ) {
        (Some(send), Some(recv)) => format!("{send}/{recv}"),
        _ => "-".to_string(),
    };
    let closed = match (detail.text("closed_by"), detail.text("closed_why")) {
        (Some(by), Some(why)) => format!("by {by}: {why}"),
        (_, why) => why.unwrap_or("").to_string(),
    };
    let waits = ["credits_waiting", "send_backlog"]
        .iter()
        .find_map(|name| detail.number(name));
    [
        connection.id.to_string().into(),
        Cell::known(&connection.peer()),
        Cell::known(&connection.source()),
        Cell::known(detail.text("device").unwrap_or("")),
        Cell::from(connection.state()).styled(style),
        credits.into(),
        Cell::number(waits.or(connection.info("sending_q_len"))),
        inline.into(),
        Cell::known(&closed),
    ]
}

fn server(out: &mut dyn io::Write, all: &Snapshot) -> io::Result<()> {
    let threads = all.nfsd.as_ref().map_or(0, |nfsd| nfsd.threads);
    let listeners = match all.nfsd.as_ref().and_then(|nfsd| nfsd.listeners.as_ref()) {
        Some(all) => {
            let mut each: Vec<_> = all
                .iter()
                .map(|l| format!("{} {}", l.netid, l.port))
                .collect();
            each.dedup();
            if each.is_empty() {
                "none".to_string()
            } else {
                each.join(", ")
            }
        }
        None => "not known".to_string(),
    };
    writeln!(
        out,
        "{TITLE}Server{TITLE:#} {threads} threads; listeners: {listeners}"
    )?;
    let mut table = Table::new(&COLUMNS);
    for connection in &all.served {
        table.row(connection_row(connection));
    }
    if !table.is_empty() {
        table.print(out)?;
    }
    let mut table = Table::new(&["ENDED", "CLIENT", "SECONDS AGO", "BY", "WHY"]);
    for ended in &all.ended {
        table.row([
            ended.id.to_string().into(),
            Cell::known(&ended.peer),
            ended.seconds_ago.to_string().into(),
            Cell::known(&ended.closed_by),
            Cell::known(&ended.closed_why),
        ]);
    }
    if table.is_empty() {
        return Ok(());
    }
    table.print(out)
}

/// Points to the other commands if these have something to say.
fn hint(out: &mut dyn io::Write, all: &Snapshot) -> io::Result<()> {
    let chapters = doctor::examine(all);
    let findings = chapters.iter().flat_map(|chapter| &chapter.findings);
    let faults = findings
        .filter(|finding| finding.level == Level::Fault)
        .count();
    if faults > 0 {
        let word = if faults == 1 { "fault" } else { "faults" };
        writeln!(
            out,
            "{FAULT}{faults} {word}{FAULT:#}: see \"nfsrdma doctor\""
        )?;
    }
    let down = |each: &&Connection| !each.is_backchannel() && !each.is_connected();
    if let Some(connection) = all.connections.iter().find(down) {
        writeln!(
            out,
            "{FAULT}not connected{FAULT:#}: see \"nfsrdma explain {}\"",
            connection.peer()
        )?;
    }
    Ok(())
}

/// Bytes in a unit that fits.
pub fn amount(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < 100.0);
    format!("{value:.decimals$} {}", units[unit])
}
