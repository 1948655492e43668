// SPDX-License-Identifier: GPL-2.0

//! A machine on which tests break things: the files of a guest that was server and client at once.

#![allow(dead_code, unreachable_pub, missing_docs)]

use nfsrdma::{
    doctor,
    error::Error,
    explain::{self, Explanation},
    finding::Finding,
    model::snapshot::Snapshot,
    source::{capture::Capture, root::Root},
};

/// Captured in a guest with the module in Rust, over Soft RoCE.
const GUEST: &str = include_str!("../captures/guest.txt");

/// The client's connection.
pub const CLIENT: &str = "/sys/kernel/debug/rpcrdma/client/2";
/// The server's connection.
pub const SERVER: &str = "/sys/kernel/debug/rpcrdma/server/1";
/// The directory of the client's connection.
pub const XPRT: &str = "/sys/kernel/sunrpc/xprt-switches/switch-1/xprt-2-rdma";
/// The address of the guest.
pub const ADDRESS: &str = "192.168.20.1";

/// What the module shows of a connection of the client.
const CLIENT_DETAIL: &str = "netid: rdma\npeer: 192.168.20.1:20049\nsource: 192.168.20.1:47710\n\
    device: rxe0\ndevice_port: 1\nstate: connected\nstate_ms: 7000\nclosed_by: -\nclosed_why: -\n\
    connects: 1\nfailed_connects: 0\nlast_connect_error: -\ninline_send_bytes: 4096\n\
    inline_recv_bytes: 4096\nremote_invalidation: yes\npulled_replies: yes\n\
    credits_granted: 128\ncredits_used: 0\ncredits_waiting: 0\nreceives_posted: 176\n\
    mrs_idle: 13\nmrs_used: 0\ncalls_in_flight: 0\noldest_call_ms: -\nwritten_bytes: 67108864\n\
    send_queue_waits: 0\nbackchannel_calls: 0\n";

/// What the module shows of a connection of the server.
const SERVER_DETAIL: &str = "netid: rdma\npeer: 192.168.20.1:47710\nsource: 192.168.20.1:20049\n\
    device: rxe0\ndevice_port: 1\nstate: connected\nstate_ms: 7000\nclosed_by: -\nclosed_why: -\n\
    admitted: yes\ninline_send_bytes: 4096\ninline_recv_bytes: 4096\nremote_invalidation: yes\n\
    pulled_replies: yes\ncredits_granted: 128\ncalls_in_flight: 0\nreceives_posted: 279\n\
    send_backlog: 0\npulled_pages: 0\nexposed_replies: 0\nexposed_pages: 0\n";

pub struct Bed(Capture);

impl Bed {
    /// A guest with nothing wrong, and all that the module shows.
    pub fn new() -> Self {
        let mut bed = Self::without_debugfs();
        bed.file("/sys/kernel/debug/", "");
        bed.file(CLIENT, CLIENT_DETAIL);
        bed.file(SERVER, SERVER_DETAIL);
        bed.file("/sys/kernel/debug/rpcrdma/server/ended", "");
        bed
    }

    /// The guest as it was captured, with a module that shows nothing in debugfs.
    pub fn without_debugfs() -> Self {
        let mut bed = Self(Capture::parse(GUEST));
        bed.remove("/sys/kernel/debug");
        bed
    }

    /// Sets the content of a file.
    pub fn file(&mut self, path: &str, text: &str) {
        self.0.insert(path, Ok(text.to_string()));
    }

    pub fn remove(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// Replaces words in a file, which must have them.
    pub fn edit(&mut self, path: &str, old: &str, new: &str) {
        let text = self.root().read(path).unwrap();
        assert!(text.contains(old), "{path} has no {old:?}: {text}");
        self.file(path, &text.replace(old, new));
    }

    /// Sets the value of a line `name: value`.
    pub fn detail(&mut self, path: &str, name: &str, value: &str) {
        let text = self.root().read(path).unwrap();
        let line = |line: &str| match line.split_once(": ") {
            Some((each, _)) if each == name => format!("{name}: {value}\n"),
            _ => format!("{line}\n"),
        };
        assert!(text.contains(&format!("{name}: ")), "{path} has no {name}");
        let text: String = text.lines().map(line).collect();
        self.file(path, &text);
    }

    /// Sets a number of `mountstats`' line of the connection: 1 to 27.
    pub fn number(&mut self, position: usize, value: u64) {
        let path = "/proc/self/mountstats";
        let text = self.root().read(path).unwrap();
        let line = |line: &str| match line.trim().strip_prefix("xprt:\trdma ") {
            Some(numbers) => {
                let mut numbers: Vec<_> = numbers.split(' ').map(str::to_string).collect();
                numbers[position - 1] = value.to_string();
                format!("\txprt:\trdma {}\n", numbers.join(" "))
            }
            None => format!("{line}\n"),
        };
        let text: String = text.lines().map(line).collect();
        self.file(path, &text);
    }

    /// Sets the numbers of an operation.
    pub fn op(&mut self, name: &str, numbers: &str) {
        let path = "/proc/self/mountstats";
        let text = self.root().read(path).unwrap();
        let line = |line: &str| match line.trim().split_once(": ") {
            Some((each, _)) if each == name => format!("\t{name}: {numbers}\n"),
            _ => format!("{line}\n"),
        };
        let text: String = text.lines().map(line).collect();
        self.file(path, &text);
    }

    pub fn sysctl(&mut self, name: &str, value: u64) {
        self.file(&format!("/proc/sys/sunrpc/{name}"), &value.to_string());
    }

    pub fn log(&mut self, message: &str) {
        self.file(
            "/dev/kmsg",
            &format!("3,900,20000000,-;rpcrdma: {message}\n"),
        );
    }

    pub fn root(&self) -> Root {
        Root::captured(self.0.clone())
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.root())
    }

    pub fn explain(&self, subject: &str) -> Result<Explanation, Error> {
        let all = self.snapshot();
        let case = explain::case(&all, &self.root(), subject)?;
        Ok(explain::explain(subject, &case))
    }

    /// What the rules of `explain` find of a subject.
    pub fn explained(&self, subject: &str) -> Vec<Finding> {
        let Explanation {
            agreed,
            limits,
            faults,
            ..
        } = self.explain(subject).unwrap();
        [agreed, limits, faults].concat()
    }

    /// What the rules of `doctor` find.
    pub fn examined(&self) -> Vec<Finding> {
        let chapters = doctor::examine(&self.snapshot());
        chapters
            .into_iter()
            .flat_map(|chapter| chapter.findings)
            .collect()
    }
}
