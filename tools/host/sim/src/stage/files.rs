// SPDX-License-Identifier: GPL-2.0

//! Readers of the files under `/sys/kernel/debug/rpcrdma`: at any time, and at rest.

use core::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use kernel::error::code::{EIO, ENOMEM};
use kernel::memory;
use kernel::sched::{self, below, pick, Config};

use super::file_laws::{self, pair, End, File};
use crate::bindings::debugfs::{files_in, OpenFile};
use crate::bindings::{books, svc};

/// A key that nothing wakes.
const PAUSE: usize = 18;

thread_local! {
    static READS: Cell<bool> = const { Cell::new(false) };
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

/// Reads a file, in one piece or in two. `None` if it goes, or there is no memory.
fn read(dir: &str, name: &str, whole: bool) -> Option<String> {
    let mut open = OpenFile::new(dir, name)?;
    let mut text = Vec::new();
    let mut most = if whole { 65_536 } else { 1 + below(400) };
    loop {
        match open.read(most) {
            Ok(bytes) if bytes.is_empty() => break,
            Ok(bytes) => text.extend(bytes),
            Err(error) if error == EIO => return None,
            Err(error) if error == ENOMEM && memory::failed() > 0 => return None,
            Err(error) => sched::fail(format_args!("{dir}/{name} cannot be read: {error:?}")),
        }
        most = 65_536;
        sched::preempt();
    }
    match String::from_utf8(text) {
        Ok(text) => Some(text),
        Err(_) => sched::fail(format_args!("{dir}/{name} is no text")),
    }
}

/// Reads the file of a connection.
fn connection(end: End, name: &str, whole: bool) -> Option<File> {
    let steps = sched::steps();
    let text = read(end.dir(), name, whole)?;
    let at_once = sched::steps() == steps;
    let file = File::parse(end, name, &text);
    let file = match file.and_then(|file| {
        if at_once {
            file.check_book()?;
        }
        Ok(file)
    }) {
        Ok(file) => file,
        Err(why) => sched::fail(format_args!("{}/{name}: {why}: {text}", end.dir())),
    };
    Some(file)
}

/// Reads the files of all connections.
fn connections(whole: bool) -> Vec<File> {
    let mut files = Vec::new();
    for end in [End::Client, End::Server] {
        for name in files_in(end.dir()) {
            if name != "ended" {
                files.extend(connection(end, &name, whole));
            }
        }
    }
    files
}

/// Reads the list of connections that have ended. None of them has a file.
fn ended(whole: bool) -> Option<Vec<u64>> {
    let text = read("server", "ended", whole)?;
    let mut numbers: Vec<u64> = Vec::new();
    let mut last = 0;
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [number, peer, seconds, by, why] = columns[..] else {
            sched::fail(format_args!(
                "a connection has ended, with the line {line:?}"
            ));
        };
        let (Ok(number), Ok(seconds)) = (number.parse(), seconds.parse::<u64>()) else {
            sched::fail(format_args!("no numbers: {line:?}"));
        };
        let is_peer = peer == "-" || peer.parse::<SocketAddr>().is_ok();
        let known = ["peer", "local", "device"].contains(&by) && !why.is_empty();
        if !is_peer || !known || seconds < last || numbers.contains(&number) {
            sched::fail(format_args!("wrong, twice or out of order: {line:?}"));
        }
        last = seconds;
        numbers.push(number);
    }
    if numbers.len() > 32 {
        sched::fail("the list of ended connections is too long");
    }
    let present = files_in("server");
    if numbers
        .iter()
        .any(|number| present.contains(&number.to_string()))
    {
        sched::fail("a connection has ended, and has a file");
    }
    Some(numbers)
}

/// Has tasks read the files now and then, if this run has them read. The module is loaded.
pub(super) fn start(config: &Config, tunables: &[(&str, u32)], threads: usize) {
    file_laws::begin(tunables, threads);
    READS.set(config.reads);
    if !config.reads {
        return;
    }
    for number in 0..1 + below(2) {
        sched::spawn(format!("reader {number}"), || {
            let rounds = pick(&[0, 1, 10, 40]);
            let pause = pick(&[100_000, 5_000_000, 500_000_000]) as usize;
            let mut last: BTreeMap<(&str, String), File> = BTreeMap::new();
            for _ in 0..rounds {
                sched::wait_until(PAUSE, sched::now() + below(pause) as u64);
                if STOPS.get() {
                    break;
                }
                let whole = below(2) == 0;
                for file in connections(whole) {
                    let key = (file.end.dir(), file.name.clone());
                    if let Some(Err(why)) = last.get(&key).map(|last| file.check_later(last)) {
                        file.fail(&why);
                    }
                    last.insert(key, file);
                }
                ended(whole);
            }
        });
    }
}

/// The client with this number has no connection. Its file says why.
pub(super) fn expect_closed(id: &str, why: &str) {
    if let Some(file) = connection(End::Client, id, true) {
        if file.text("closed_why") != why {
            file.fail(&format!("closed: {}, not {why}", file.text("closed_why")));
        }
    }
}

/// Has the tasks stop, which may take a while.
pub(super) fn stop() {
    STOPS.set(true);
}

/// Whether all is as it has to be when nothing happens any more.
fn is_at_rest(faultless: bool) -> Result<(), String> {
    let files = connections(true);
    for file in &files {
        let rest = file.check_rest();
        rest.map_err(|why| format!("{}/{}: {why}", file.end.dir(), file.name))?;
    }
    let of = |end: End| files.iter().filter(move |file| file.end == end);
    if let Some(file) = of(End::Server).find(|file| file.text("state") == "closing") {
        return Err(format!("server/{}: closing", file.name));
    }
    // Without memory, a connection has no file.
    if memory::failed() > 0 {
        return Ok(());
    }
    for (which, end) in [End::Server, End::Client].into_iter().enumerate() {
        let sum = |name: &str| of(end).map(|file| file.number(name)).sum::<u64>();
        let (receives, mrs) = books::of_device(which);
        let said = sum("receives_posted");
        if said != receives as u64 {
            return Err(format!(
                "{end:?}: {said} Receives are posted, not {receives}"
            ));
        }
        let said = sum("mrs_idle") + sum("mrs_used");
        if end == End::Client && said != mrs as u64 {
            return Err(format!("{end:?}: {said} MRs, not {mrs}"));
        }
    }
    let gone = ended(true).ok_or("the list of ended connections cannot be read")?;
    let (there, accepted) = (of(End::Server).count(), svc::accepted());
    if gone.len() < 32 && gone.len() + there != accepted {
        return Err(format!(
            "{gone:?} have ended, {there} are there, of {accepted}"
        ));
    }
    if faultless {
        for client in of(End::Client) {
            let is_other = |server: &&File| server.text("peer") == client.text("source");
            let server = of(End::Server).find(is_other);
            pair(client, server.ok_or("a client has no server")?)?;
        }
    }
    Ok(())
}

/// Waits until the files say that nothing is in use, if this run has them read. `faultless`: no
/// connection has ended, and no Call was given up. Returns the number of Replies that the clients
/// have pulled, as far as files say so.
pub(super) fn at_rest(faultless: bool) -> Result<u64, String> {
    if !READS.get() {
        return Ok(0);
    }
    let pulled = Rc::new(Cell::new(None));
    let found = pulled.clone();
    sched::spawn("a last reader", move || {
        let most = sched::now() + 200_000_000_000;
        while let Err(why) = is_at_rest(faultless) {
            if sched::now() > most {
                sched::fail(format_args!("at rest: {why}"));
            }
            sched::wait_until(PAUSE, sched::now() + 20_000_000);
        }
        let files = connections(true);
        let clients = files.iter().filter(|file| file.end == End::Client);
        found.set(Some(
            clients.map(|file| file.number("replies_pulled")).sum(),
        ));
    });
    sched::run_until("the last reader", || pulled.get().is_some())?;
    Ok(pulled.get().unwrap_or_default())
}
