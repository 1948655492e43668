// SPDX-License-Identifier: GPL-2.0

//! Whether the tables say what is so.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
};

use crate::{
    data::{Bug, Compliance, Guard, Port, Reference, Requirement, Tables, C_MODULE, PORTS},
    tree::{File, Tree},
};

/// Checks everything. Returns what is wrong, one line each.
pub(crate) fn all(tables: &Tables, tree: &Tree, kernel: Option<&Path>) -> BTreeSet<String> {
    let mut check = Check {
        tables,
        tree,
        wrong: tree.broken.iter().cloned().collect(),
    };
    check.requirements();
    check.bugs();
    check.probe();
    check.ports(kernel);
    check.origins();
    check.wrong
}

/// Names the counterparts of a file of Rust in the C module.
const ORIGIN: &str = "C: frwr_ops.c, frwr_map(), struct rpcrdma_mr";

struct Check<'a> {
    tables: &'a Tables,
    tree: &'a Tree,
    wrong: BTreeSet<String>,
}

/// A record of either table.
struct Record<'a> {
    path: &'a Path,
    id: &'a str,
    code: &'a [Reference],
    shown: &'a [Reference],
    text: [&'a str; 2],
}

impl<'a> From<(&'a Path, &'a Requirement)> for Record<'a> {
    fn from((path, it): (&'a Path, &'a Requirement)) -> Self {
        let text = [&*it.asks, it.note.as_deref().unwrap_or_default()];
        Self {
            path,
            id: &it.id,
            code: &it.code,
            shown: &it.shown,
            text,
        }
    }
}

impl<'a> From<(&'a Path, &'a Bug)> for Record<'a> {
    fn from((path, it): (&'a Path, &'a Bug)) -> Self {
        let text = [&*it.failure, it.note.as_deref().unwrap_or_default()];
        Self {
            path,
            id: &it.id,
            code: &it.code,
            shown: &it.shown,
            text,
        }
    }
}

impl<'a> Check<'a> {
    fn complain(&mut self, path: &Path, id: &str, why: impl fmt::Display) {
        self.wrong
            .insert(format!("{}: {id}: {why}", path.display()));
    }

    fn requirements(&mut self) {
        let mut numbers = BTreeMap::new();

        for (path, it) in self.tables.each_requirement() {
            let mut complain = |why: &str| self.complain(path, &it.id, why);
            match it.state {
                Compliance::Met if it.code.is_empty() => complain("met, but no code is named"),
                Compliance::Met if it.shown.is_empty() => complain("met, but no test is named"),
                Compliance::Reading if it.code.is_empty() => {
                    complain("to be read, but no code is named")
                }
                Compliance::Met => {}
                _ if it.note.is_none() => complain("no reason is given"),
                _ => {}
            }
            self.numbered(path, &it.id, '-', &mut numbers);
            self.record((path, it).into());
        }
    }

    fn bugs(&mut self) {
        for (path, table) in &self.tables.bugs {
            let mut numbers = BTreeMap::new();
            if !table.entry.iter().any(|it| it.state == Guard::Test) {
                self.complain(path, &table.class.to_string(), "no test at all");
            }
            for it in &table.entry {
                let mut complain = |why: &str| self.complain(path, &it.id, why);
                match it.state {
                    Guard::Test if it.shown.is_empty() => complain("no test is named"),
                    Guard::Type | Guard::None if it.code.is_empty() => complain("no code is named"),
                    Guard::NotApplicable if it.note.is_none() => complain("no reason is given"),
                    _ => {}
                }
                if !it.id.starts_with(table.class) {
                    complain("of another class");
                }
                self.numbered(path, &it.id, table.class, &mut numbers);
                self.record((path.as_path(), it).into());
            }
        }
    }

    /// Numbers begin with 1, and none is left out or comes twice.
    fn numbered(
        &mut self,
        path: &Path,
        id: &'a str,
        before: char,
        last: &mut BTreeMap<&'a str, u32>,
    ) {
        let (group, number) = id.rsplit_once(before).unwrap_or((id, ""));
        let expected = last.get(group).map_or(1, |last| last + 1);
        match number.parse::<u32>() {
            Ok(number) => {
                if number != expected {
                    self.complain(path, id, format_args!("the next number is {expected}"));
                }
                last.insert(group, number);
            }
            Err(_) => self.complain(path, id, "no number"),
        }
    }

    /// What a record names exists.
    fn record(&mut self, it: Record<'a>) {
        for each in it.code {
            match each {
                Reference::HostTest(name) => {
                    self.complain(it.path, it.id, format_args!("{name} is no file"));
                }
                Reference::File(file) => self.names(&it, file, None),
                Reference::Item(file, item) => self.names(&it, file, Some(item)),
            }
        }
        for each in it.shown {
            match each {
                Reference::HostTest(name) if !self.tree.host_tests.contains(name) => {
                    self.complain(it.path, it.id, format_args!("there is no test {name}"));
                }
                Reference::HostTest(_) => {}
                Reference::File(file) | Reference::Item(file, _) if file.starts_with("rust/") => {
                    self.complain(it.path, it.id, format_args!("{file} is no test"));
                }
                Reference::File(file) => self.names(&it, file, None),
                Reference::Item(file, item) => self.names(&it, file, Some(item)),
            }
        }
        for text in it.text {
            self.literals(&it, text);
            self.mentions(&it, text);
        }
    }

    fn names(&mut self, it: &Record<'_>, file: &str, item: Option<&str>) {
        if let Some(why) = self.tree.lacks(file, item) {
            self.complain(it.path, it.id, why);
        }
    }

    /// What is in double backquotes: a file, the item after it in parentheses, or a name that
    /// is known somewhere. A setting, a command, or a path outside the tree is none of these.
    fn literals(&mut self, it: &Record<'_>, text: &str) {
        let mut file = None;
        let mut before = "";

        for (number, part) in text.split("``").enumerate() {
            if number % 2 == 0 {
                before = part;
                continue;
            }
            if part.starts_with('/') || part.contains([' ', '=']) {
                continue;
            }
            match file {
                Some(file) if before.ends_with(" (") || before.ends_with("\n(") => {
                    self.names(it, file, Some(part));
                    continue;
                }
                _ => {}
            }
            if part.contains('/') {
                file = Some(part);
                self.names(it, part, None);
            } else if !part.split("::").all(|name| self.tree.knows(name)) {
                self.complain(it.path, it.id, format_args!("{part} is not known"));
            }
        }
    }

    /// Other records that a text names.
    fn mentions(&mut self, it: &Record<'_>, text: &str) {
        let words = text.split(|c: char| !c.is_alphanumeric() && !"-./".contains(c));
        for word in words.map(|word| word.trim_end_matches('.')) {
            let is_requirement = word.split_once('-').is_some_and(|(document, _)| {
                self.tables
                    .each_requirement()
                    .any(|(_, it)| it.id.starts_with(document))
                    && document.ends_with(|c: char| c.is_ascii_digit())
            });
            let is_bug = self.tables.bugs.iter().any(|(_, table)| {
                word.strip_prefix(table.class)
                    .is_some_and(|rest| rest.parse::<u32>().is_ok())
            });
            if is_requirement && !self.tables.each_requirement().any(|(_, it)| it.id == word)
                || is_bug && !self.tables.each_bug().any(|(_, it)| it.id == word)
            {
                self.complain(it.path, it.id, format_args!("there is no {word}"));
            }
        }
    }

    /// What the cases of the probe are about is a requirement, and its record names them.
    /// RFC 8267 is the upper layer's and has no table.
    fn probe(&mut self) {
        for (file, case) in self.tree.files().flat_map(|(path, file)| match file {
            File::C { cases, .. } if path.starts_with("tools/probe/") => {
                cases.iter().map(|case| (path, case)).collect()
            }
            _ => Vec::new(),
        }) {
            for id in case.about.iter().filter(|id| !id.starts_with("R8267-")) {
                match self.tables.each_requirement().find(|(_, it)| it.id == *id) {
                    None => {
                        self.wrong
                            .insert(format!("{file}: {id}: there is no such requirement"));
                    }
                    Some((path, it)) if it.state == Compliance::Met => {
                        let named = |each: &Reference| {
                            each.file()
                                .is_some_and(|file| file.starts_with("tools/probe/"))
                        };
                        if !it.shown.iter().any(named) {
                            self.complain(path, id, format_args!("does not name {file}"));
                        }
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// What the table of the C module names exists, there and here.
    fn ports(&mut self, kernel: Option<&Path>) {
        let mut seen = BTreeSet::new();
        let mut sources = BTreeMap::new();

        for it in &self.tables.ports {
            let Port {
                c_file,
                c_name,
                file,
                item,
                note,
            } = it;
            let mut complain = |why: &dyn fmt::Display| {
                self.wrong
                    .insert(format!("{PORTS}: {c_file}, {c_name}: {why}"));
            };
            if let Some(kernel) = kernel {
                let source = sources.entry(c_file).or_insert_with(|| {
                    fs::read_to_string(kernel.join(C_MODULE).join(c_file))
                        .or_else(|_| {
                            fs::read_to_string(kernel.join("include/linux/sunrpc").join(c_file))
                        })
                        .unwrap_or_default()
                });
                if !defines(source, c_name) {
                    complain(&format_args!("not in {c_file}"));
                }
            }
            if !seen.insert((c_file, c_name, file, item)) {
                complain(&"twice");
            }
            if file.is_empty() {
                if !item.is_empty() || note.is_empty() {
                    complain(&"neither a file nor a reason");
                }
            } else if let Some(why) = self
                .tree
                .lacks(file, Some(&**item).filter(|it| !it.is_empty()))
            {
                complain(&why);
            }
        }
    }

    /// Lines like [`ORIGIN`] above files of Rust.
    fn origins(&mut self) {
        for (path, file) in self.tree.files() {
            let File::Rust { origins, .. } = file else {
                continue;
            };
            for line in origins {
                let mut parts = line.trim_end_matches('.').split(", ");
                let file = parts.next().unwrap_or_default();
                let names: Vec<_> = parts.collect();
                if !(file.ends_with(".c") || file.ends_with(".h"))
                    || names.is_empty()
                    || !names.iter().all(|name| {
                        let name = name
                            .strip_suffix("()")
                            .or_else(|| name.strip_prefix("struct "));
                        name.is_some_and(is_word)
                    })
                {
                    self.wrong
                        .insert(format!("{path}: \"C: {line}\" is not like \"{ORIGIN}\""));
                }
            }
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether a file of C has that name as a word.
fn defines(source: &str, name: &str) -> bool {
    source.match_indices(name).any(|(at, _)| {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        !source[..at].ends_with(part) && !source[at + name.len()..].starts_with(part)
    })
}
