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

pub struct Bed(Capture);

impl Bed {
    /// A guest with nothing wrong.
    pub fn new() -> Self {
        Self(Capture::parse(GUEST))
    }

    /// The same with a module that shows nothing in debugfs.
    pub fn without_debugfs() -> Self {
        let mut bed = Self::new();
        bed.remove("/sys/kernel/debug/rpcrdma");
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

/// The finding of this rule that has these words, with this next step. Panics if there is none.
#[track_caller]
pub fn told<'a>(found: &'a [Finding], rule: &str, says: &str, next: &str) -> &'a Finding {
    let mut of_rule = found.iter().filter(|finding| finding.rule == rule);
    let told = of_rule.find(|finding| {
        let step = finding.next.as_deref().unwrap_or("");
        finding.what.contains(says) && step.contains(next)
    });
    told.unwrap_or_else(|| panic!("{rule} does not say {says:?}, {next:?}: {found:#?}"))
}

/// Panics if a finding meets the condition.
#[track_caller]
pub fn none(found: &[Finding], condition: impl Fn(&Finding) -> bool) {
    assert!(!found.iter().any(condition), "{found:#?}");
}
