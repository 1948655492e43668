// SPDX-License-Identifier: GPL-2.0

//! The tests that `make test` has to run, and the tests that a reference names.

use std::{fs, path::Path};

use crate::{
    data::Reference,
    tree::{c::Case, File, Tree},
};

/// The plan, relative to the root: tab-separated lines of a suite, a test, and a remark.
pub(crate) const PLAN: &str = "tools/test/plan";

/// Suites of the probe have this prefix, before the name of the group.
pub(crate) const PROBE: &str = "probe/";

/// Where the probe is.
const PROBE_DIR: &str = "tools/probe/";

/// The tests of the matrix with the C module.
const MATRIX: &str = "tools/interop/guest/run-client.sh";

/// Each suite with this prefix runs some of them, for one pair of modules.
const PAIR: &str = "interop-";

/// The third field of a test that runs with a setting only.
const WITH: &str = "with ";

/// The third field of a test that may be skipped.
const SKIP: &str = "skip: ";

/// A line of the plan.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Planned {
    /// The name of the suite.
    pub(crate) suite: String,
    /// The name of the test, as its result has it.
    pub(crate) test: String,
    /// The reason for which it may be skipped.
    pub(crate) skip: Option<String>,
}

/// The plan.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The tests that have to run.
    pub(crate) tests: Vec<Planned>,
    /// The tests that `make test` does not run, because they need a setting.
    elsewhere: Vec<Planned>,
}

/// What a reference names.
#[derive(Debug)]
pub(crate) enum Named<'a> {
    /// Tests of the plan.
    Planned(Vec<&'a Planned>),
    /// A test that `make test` does not run.
    Elsewhere,
    /// No test at all.
    Nothing,
}

impl Plan {
    /// Reads the plan of the tree at `root`.
    ///
    /// # Errors
    ///
    /// A message about the first line that has not two or three fields, or another remark.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(root.join(PLAN)).map_err(|err| format!("{PLAN}: {err}"))?;
        let mut plan = Self::default();
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            let fields: Vec<_> = line.split('\t').collect();
            let planned = |skip: Option<&str>| Planned {
                suite: fields[0].into(),
                test: fields[1].into(),
                skip: skip.map(String::from),
            };
            match fields[..] {
                [_, _] => plan.tests.push(planned(None)),
                [_, _, remark] if remark.starts_with(WITH) => plan.elsewhere.push(planned(None)),
                [_, _, remark] if remark.starts_with(SKIP) => {
                    plan.tests.push(planned(remark.strip_prefix(SKIP)));
                }
                _ => return Err(format!("{PLAN}:{}: not a line of a plan", number + 1)),
            }
        }
        Ok(plan)
    }

    /// Whether `make test` runs a suite of this name.
    pub(crate) fn has(&self, suite: &str) -> bool {
        self.tests.iter().any(|planned| planned.suite == suite)
    }

    /// The tests that a reference of the record `id` names.
    pub(crate) fn find(&self, tree: &Tree, reference: &Reference, id: &str) -> Named<'_> {
        let (file, item) = match reference {
            Reference::HostTest(name) => {
                return self.in_suite("host", |test| test.split("::").any(|part| part == name));
            }
            Reference::File(file) => (file, None),
            Reference::Item(file, item) => (file, Some(item.as_str())),
        };
        if let Some(suite) = selftest(file) {
            return self.in_suite(suite, |test| item.is_none_or(|item| has_words(test, item)));
        }
        if let (true, Some(item)) = (file == MATRIX, item) {
            return self.of_matrix(item);
        }
        if !file.starts_with(PROBE_DIR) {
            return Named::Elsewhere;
        }
        // A function of the guest's script is a group of its own.
        if let (Some(item), true) = (item, file.ends_with(".sh")) {
            return self.in_suite(&format!("{PROBE}{item}"), |_| true);
        }
        match self.of_probe(tree, file, item, id) {
            found if !found.is_empty() => Named::Planned(found),
            // Mutated messages are no cases.
            _ if item.is_none() => Named::Elsewhere,
            _ => Named::Nothing,
        }
    }

    /// The tests of a suite for which `is_it` holds.
    fn in_suite(&self, suite: &str, is_it: impl Fn(&str) -> bool) -> Named<'_> {
        let is_named = |planned: &&Planned| planned.suite == suite && is_it(&planned.test);
        let found: Vec<_> = self.tests.iter().filter(is_named).collect();
        if !found.is_empty() {
            Named::Planned(found)
        } else if !self.has(suite) || self.elsewhere.iter().any(|planned| is_named(&planned)) {
            Named::Elsewhere
        } else {
            Named::Nothing
        }
    }

    /// The tests of the matrix that this function runs, for each pair.
    fn of_matrix(&self, item: &str) -> Named<'_> {
        let is_it = |planned: &&Planned| {
            planned.suite.starts_with(PAIR) && planned.test.split(' ').next() == Some(item)
        };
        let found: Vec<_> = self.tests.iter().filter(is_it).collect();
        if found.is_empty() {
            Named::Elsewhere
        } else {
            Named::Planned(found)
        }
    }

    /// The cases of the probe that are tagged with the requirement `id`.
    pub(crate) fn tagged(&self, tree: &Tree, id: &str) -> Vec<&Planned> {
        self.cases(tree, |_, case| case.tags.iter().any(|tag| tag == id))
    }

    /// The cases of the probe that `file:item` names: rows with `item` in the tables of this file,
    /// or in other tables. A function that no table names belongs to the cases that are tagged
    /// with the record's id. A file without an item names all of its cases.
    fn of_probe(&self, tree: &Tree, file: &str, item: Option<&str>, id: &str) -> Vec<&Planned> {
        let Some(item) = item else {
            return self.cases(tree, |path, _| path == file);
        };
        let here = self.cases(tree, |path, case| path == file && case.words.contains(item));
        if !here.is_empty() {
            return here;
        }
        let anywhere = self.cases(tree, |_, case| case.words.contains(item));
        if !anywhere.is_empty() {
            return anywhere;
        }
        self.tagged(tree, id)
    }

    /// The planned tests for all rows of the probe's tables for which `is_it` holds.
    fn cases(&self, tree: &Tree, is_it: impl Fn(&str, &Case) -> bool) -> Vec<&Planned> {
        let mut found = Vec::new();
        for (path, file) in tree.files().filter(|(path, _)| path.starts_with(PROBE_DIR)) {
            let File::C { cases, groups, .. } = file else {
                continue;
            };
            for case in cases.iter().filter(|case| is_it(path, case)) {
                found.extend(self.tests.iter().filter(|planned| {
                    let group = planned.suite.strip_prefix(PROBE);
                    group.is_some_and(|group| groups.contains(group))
                        && title(&planned.test) == case.title
                }));
            }
        }
        found
    }

    /// The differences between the plan and the sources, for a check without a run. The names of
    /// tests may be made when they run: functions and titles are compared.
    pub(crate) fn stale(&self, root: &Path, tree: &Tree) -> Vec<String> {
        let mut stale = Vec::new();
        let mut missing = |suite: &str, test: &str| {
            stale.push(format!("{PLAN}: has no line for {suite}: {test}"));
        };
        let of_suite = |suite: &str| -> Vec<&str> {
            let all = self.tests.iter().chain(&self.elsewhere);
            all.filter(|planned| planned.suite == suite)
                .map(|planned| planned.test.as_str())
                .collect()
        };

        let host = of_suite("host");
        let is_host = |test: &str, name: &str| test.split("::").any(|part| part == name);
        for name in &tree.host_tests {
            if !host.iter().any(|test| is_host(test, name)) {
                missing("host", name);
            }
        }
        let listed = fs::read_to_string(root.join("selftests/suites")).unwrap_or_default();
        for suite in listed.lines().filter(|line| !line.starts_with('#')) {
            if !self.has(suite) {
                missing(suite, "all");
            }
        }
        for (path, file) in tree.files() {
            match file {
                File::C { cases, groups, .. } if path.starts_with(PROBE_DIR) => {
                    let planned: Vec<_> = groups
                        .iter()
                        .flat_map(|group| of_suite(&format!("{PROBE}{group}")))
                        .map(title)
                        .collect();
                    for case in cases {
                        if !planned.contains(&case.title.as_str()) {
                            missing(path, &case.title);
                        }
                    }
                }
                File::Shell { functions, .. } if path.starts_with("tools/check/") => {
                    let rules = functions
                        .iter()
                        .filter_map(|name| name.strip_prefix("rule_"));
                    let planned = of_suite("check");
                    for rule in rules.filter(|rule| !planned.contains(rule)) {
                        missing("check", rule);
                    }
                }
                File::Shell { functions, cases } => {
                    let planned = selftest(path).map(of_suite).unwrap_or_default();
                    for case in functions.intersection(cases) {
                        if !planned.is_empty() && !planned.iter().any(|test| has_words(test, case))
                        {
                            missing(path, case);
                        }
                    }
                }
                _ => {}
            }
        }

        for Planned { suite, test, .. } in &self.tests {
            let exists = match suite.as_str() {
                "host" => {
                    let is_it = |name: &String| is_host(test, name);
                    test.starts_with("fuzz::") || tree.host_tests.iter().any(is_it)
                }
                _ => match tree.file(&format!("selftests/{suite}.sh")) {
                    Some(File::Shell { cases, .. }) => {
                        cases.iter().any(|case| has_words(test, case))
                    }
                    _ => true,
                },
            };
            if !exists {
                stale.push(format!("{PLAN}: {suite}: there is no {test}"));
            }
        }
        stale
    }
}

/// The title of a case of the probe. Results have the requirements behind it.
pub(crate) fn title(test: &str) -> &str {
    test.rsplit_once(" (").map_or(test, |(title, _)| title)
}

/// The suite of a program in `selftests/`.
fn selftest(file: &str) -> Option<&str> {
    file.strip_prefix("selftests/")?.strip_suffix(".sh")
}

/// Whether a test of a selftest has the words of `item`: the function, or one of its arguments.
fn has_words(test: &str, item: &str) -> bool {
    format!(" {test} ").contains(&format!(" {} ", item.replace('_', " ")))
}
