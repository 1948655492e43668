// SPDX-License-Identifier: GPL-2.0

//! Checks requirements and bug classes.

use std::{collections::BTreeMap, path::Path};

use super::Findings;
use crate::{
    data::{Bug, Compliance, Guard, Reference, Requirement, Tables},
    plan::{Named, Plan, PLAN},
    tree::{File, Tree},
};

/// Checks each requirement.
pub(super) fn requirements(tables: &Tables, tree: &Tree, findings: &mut Findings) {
    let mut last = BTreeMap::new();

    for (path, requirement) in tables.each_requirement() {
        let error = match requirement.state {
            Compliance::Met if requirement.code.is_empty() => Some("met, but no code is named"),
            Compliance::Met if requirement.shown.is_empty() => Some("met, but no test is named"),
            Compliance::Met => None,
            Compliance::Partly if requirement.code.is_empty() => {
                Some("partly met, but no code is named")
            }
            Compliance::Partly if requirement.shown.is_empty() => {
                Some("partly met, but no test is named")
            }
            Compliance::Reading if requirement.code.is_empty() => {
                Some("met by reading, but no code is named")
            }
            _ if requirement.note.is_none() => Some("no reason is given"),
            _ => None,
        };
        if let Some(error) = error {
            findings.add(path.display(), &requirement.id, error);
        }
        check_number(path, &requirement.id, '-', &mut last, findings);
        check_record(tables, tree, &(path, requirement).into(), findings);
    }
}

/// Checks each bug.
pub(super) fn bugs(tables: &Tables, tree: &Tree, findings: &mut Findings) {
    for (path, table) in &tables.bugs {
        let mut last = BTreeMap::new();

        if !table.entry.iter().any(|bug| bug.state == Guard::Test) {
            findings.add(
                path.display(),
                &table.class.to_string(),
                "no entry has a test",
            );
        }
        for bug in &table.entry {
            let error = match bug.state {
                Guard::Test | Guard::Elsewhere if bug.shown.is_empty() => Some("no test is named"),
                Guard::Type | Guard::None if bug.code.is_empty() => Some("no code is named"),
                Guard::NotApplicable if bug.note.is_none() => Some("no reason is given"),
                _ if !bug.id.starts_with(table.class) => Some("belongs to another class"),
                _ => None,
            };
            if let Some(error) = error {
                findings.add(path.display(), &bug.id, error);
            }
            check_number(path, &bug.id, table.class, &mut last, findings);
            check_record(tables, tree, &(path.as_path(), bug).into(), findings);
        }
    }
}

/// Checks that `make test` runs a test of each requirement that is met and of each bug with a test,
/// and that the plan has each test that a record names.
pub(super) fn planned(tables: &Tables, tree: &Tree, plan: &Plan, findings: &mut Findings) {
    let mut check = |path: &Path, id: &str, shown: &[Reference], needed: Option<bool>| {
        let mut count = 0;
        for reference in shown {
            match plan.find(tree, reference, id) {
                Named::Planned(_) => count += 1,
                // Names that do not exist have been reported.
                _ if find_test(tree, reference).is_err() => count += 1,
                Named::Elsewhere => {}
                Named::Nothing => {
                    let error = format_args!("{PLAN} has no test for {reference}");
                    findings.add(path.display(), id, error);
                }
            }
        }
        match needed {
            Some(true) if count == 0 && !shown.is_empty() => {
                findings.add(path.display(), id, "make test runs no test of it");
            }
            Some(false) if count != 0 => {
                findings.add(path.display(), id, "make test runs a test of it");
            }
            _ => {}
        }
    };
    for (path, requirement) in tables.each_requirement() {
        let needed = (requirement.state == Compliance::Met).then_some(true);
        check(path, &requirement.id, &requirement.shown, needed);
    }
    for (path, bug) in tables.each_bug() {
        let needed = match bug.state {
            Guard::Test => Some(true),
            Guard::Elsewhere => Some(false),
            _ => None,
        };
        check(path, &bug.id, &bug.shown, needed);
    }
}

/// Checks that each case of the probe is tagged with requirements, and that their records name the
/// probe.
pub(super) fn probe_tags(tables: &Tables, tree: &Tree, findings: &mut Findings) {
    let is_probe = |file: &str| file.starts_with("tools/probe/");
    for (file, contents) in tree.files().filter(|(path, _)| is_probe(path)) {
        let File::C { cases, .. } = contents else {
            continue;
        };
        let tags = cases.iter().flat_map(|case| &case.tags);
        for id in tags {
            match tables
                .each_requirement()
                .find(|(_, requirement)| requirement.id == *id)
            {
                None => findings.add(file, id, "there is no such requirement"),
                Some((path, requirement)) => {
                    let named = |shown: &Reference| shown.file().is_some_and(is_probe);
                    let claims = [Compliance::Met, Compliance::Partly].contains(&requirement.state);
                    if claims && !requirement.shown.iter().any(named) {
                        findings.add(path.display(), id, format_args!("does not name {file}"));
                    }
                }
            }
        }
    }
}

/// What a requirement and a bug have in common.
struct Record<'a> {
    path: &'a Path,
    id: &'a str,
    code: &'a [Reference],
    shown: &'a [Reference],
    texts: [&'a str; 2],
}

impl<'a> From<(&'a Path, &'a Requirement)> for Record<'a> {
    fn from((path, requirement): (&'a Path, &'a Requirement)) -> Self {
        Self {
            path,
            id: &requirement.id,
            code: &requirement.code,
            shown: &requirement.shown,
            texts: [
                &requirement.asks,
                requirement.note.as_deref().unwrap_or_default(),
            ],
        }
    }
}

impl<'a> From<(&'a Path, &'a Bug)> for Record<'a> {
    fn from((path, bug): (&'a Path, &'a Bug)) -> Self {
        Self {
            path,
            id: &bug.id,
            code: &bug.code,
            shown: &bug.shown,
            texts: [&bug.failure, bug.note.as_deref().unwrap_or_default()],
        }
    }
}

/// Checks that the numbers of a group start at 1 and have no gaps. A group is what precedes
/// `separator` in an id; `last` has the last number of each.
fn check_number<'a>(
    path: &Path,
    id: &'a str,
    separator: char,
    last: &mut BTreeMap<&'a str, u32>,
    findings: &mut Findings,
) {
    let (group, number) = id.rsplit_once(separator).unwrap_or((id, ""));
    let expected = last.get(group).map_or(1, |last| last + 1);
    match number.parse::<u32>() {
        Ok(number) => {
            if number != expected {
                let error = format_args!("the next number is {expected}");
                findings.add(path.display(), id, error);
            }
            last.insert(group, number);
        }
        Err(_) => findings.add(path.display(), id, "has no number"),
    }
}

/// Checks that the files, items, tests and records that a record names exist.
fn check_record(tables: &Tables, tree: &Tree, record: &Record<'_>, findings: &mut Findings) {
    let mut errors = Vec::new();

    for reference in record.code {
        errors.extend(match reference {
            Reference::HostTest(name) => Some(format!("{name} is no file")),
            Reference::File(file) => tree.find(file, None).err(),
            Reference::Item(file, item) => tree.find(file, Some(item)).err(),
        });
    }
    for reference in record.shown {
        errors.extend(find_test(tree, reference).err());
    }
    for text in record.texts {
        check_literals(tree, text, &mut errors);
        check_mentions(tables, text, &mut errors);
    }
    for error in errors {
        findings.add(record.path.display(), record.id, error);
    }
}

/// Looks up a test in the sources.
///
/// # Errors
///
/// A message if there is no such test.
fn find_test(tree: &Tree, reference: &Reference) -> Result<(), String> {
    match reference {
        Reference::HostTest(name) if tree.host_tests.contains(name) => Ok(()),
        Reference::HostTest(name) => Err(format!("there is no test {name}")),
        Reference::File(file) | Reference::Item(file, _) if file.starts_with("rust/") => {
            Err(format!("{file} is no test"))
        }
        Reference::File(file) => tree.find(file, None),
        Reference::Item(file, item) => tree.find(file, Some(item)),
    }
}

/// Checks literals (text in double backquotes). A literal is a file, an item in parentheses after
/// its file, or a name that is defined anywhere. Settings, commands, and absolute paths are not
/// checked.
fn check_literals(tree: &Tree, text: &str, errors: &mut Vec<String>) {
    let mut file = None;
    let mut before = "";

    for (index, part) in text.split("``").enumerate() {
        let is_literal = index % 2 == 1;
        if !is_literal {
            before = part;
            continue;
        }
        if part.starts_with('/') || part.contains([' ', '=']) {
            continue;
        }
        match file {
            Some(file) if before.ends_with('(') => errors.extend(tree.find(file, Some(part)).err()),
            _ if part.contains('/') => {
                file = Some(part);
                errors.extend(tree.find(part, None).err());
            }
            _ if part.split("::").all(|name| tree.knows(name)) => {}
            _ => errors.push(format!("{part} is not known")),
        }
    }
}

/// Checks the ids of other records in a text.
fn check_mentions(tables: &Tables, text: &str, errors: &mut Vec<String>) {
    let words = text.split(|c: char| !c.is_alphanumeric() && !"-./".contains(c));
    for word in words.map(|word| word.trim_end_matches('.')) {
        let document = word.split_once('-').map_or("", |(document, _)| document);
        let is_requirement = document.ends_with(|c: char| c.is_ascii_digit())
            && tables
                .each_requirement()
                .any(|(_, other)| other.id.starts_with(document));
        let is_bug = tables.bugs.iter().any(|(_, table)| {
            let number = word.strip_prefix(table.class);
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        });
        if is_requirement && !tables.each_requirement().any(|(_, other)| other.id == word)
            || is_bug && !tables.each_bug().any(|(_, other)| other.id == word)
        {
            errors.push(format!("there is no {word}"));
        }
    }
}
