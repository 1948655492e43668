// SPDX-License-Identifier: GPL-2.0

//! The outputs of a run: files of KTAP, as `tools/test/run` keeps them.

use std::{collections::BTreeMap, fs, path::Path};

use crate::plan::{Plan, PROBE};

/// Stands for all suites of the plan.
const ALL: &str = "all";

/// How a test ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// `ok`.
    Passed,
    /// `not ok`.
    Failed,
    /// `# SKIP`, with the reason.
    Skipped(String),
    /// `# XFAIL`, with the reason.
    Expected(String),
}

/// All results of some suites.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    suites: BTreeMap<String, BTreeMap<String, Vec<Outcome>>>,
}

impl Outputs {
    /// Reads the output of suites from the files of these names in `dir`. All groups of the probe
    /// count as run if the probe is among them, and all suites of the plan if `all` is.
    ///
    /// # Errors
    ///
    /// A message about the first file that cannot be read.
    pub(crate) fn read(dir: &Path, names: &[&str], plan: &Plan) -> Result<Self, String> {
        let mut outputs = Self::default();
        let (all, probe) = (names.contains(&ALL), names.contains(&"probe"));
        for planned in &plan.tests {
            if all || probe && planned.suite.starts_with(PROBE) {
                outputs.suites.entry(planned.suite.clone()).or_default();
            }
        }
        for name in names.iter().filter(|name| **name != ALL) {
            let path = dir.join(name);
            let text = fs::read(&path).map_err(|err| format!("{}: {err}", path.display()))?;
            outputs.add(name, &String::from_utf8_lossy(&text));
        }
        Ok(outputs)
    }

    /// Adds the output of one suite. The probe prints several groups, each a suite of the plan.
    fn add(&mut self, name: &str, text: &str) {
        // A suite on a second kernel is named after it.
        let name = name
            .split_once('@')
            .map_or(name.into(), |(name, _)| format!("{name}@"));
        let mut suite = name.clone();
        self.suites.entry(suite.clone()).or_default();
        for line in text.lines() {
            if line.starts_with("retry: ") {
                // The suite starts again. Earlier failures count.
                let results = self.suites.entry(suite.clone()).or_default();
                results.retain(|_, outcomes| outcomes.contains(&Outcome::Failed));
            } else if let Some(group) = line.strip_prefix("# group ") {
                let group = group.split([',', ' ']).next().unwrap_or_default();
                suite = format!("{PROBE}{group}");
                self.suites.remove(&name);
                self.suites.entry(suite.clone()).or_default();
            } else if let Some((test, outcome)) = result(line) {
                let results = self.suites.entry(suite.clone()).or_default();
                results.entry(test).or_default().push(outcome);
            }
        }
    }

    /// Whether this suite ran.
    pub(crate) fn has(&self, suite: &str) -> bool {
        self.suites.contains_key(suite)
    }

    /// The outcomes of a test: several if tests have the same name, or none if it has no result.
    pub(crate) fn of(&self, suite: &str, test: &str) -> &[Outcome] {
        let results = self.suites.get(suite);
        results
            .and_then(|results| results.get(test))
            .map_or(&[], Vec::as_slice)
    }

    /// Each result: suite, test and outcome.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &str, &Outcome)> {
        self.suites.iter().flat_map(|(suite, results)| {
            results.iter().flat_map(move |(test, outcomes)| {
                let of_test = outcomes.iter();
                of_test.map(move |outcome| (suite.as_str(), test.as_str(), outcome))
            })
        })
    }
}

/// The name and the outcome in a line `ok 1 - NAME # SKIP REASON`.
fn result(line: &str) -> Option<(String, Outcome)> {
    let (passed, rest) = match line.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok ")?),
    };
    let (_, name) = rest.split_once("- ")?;
    let directive = |word: &str| {
        let (name, reason) = name.split_once(&format!(" # {word}"))?;
        Some((name.into(), reason.trim().into()))
    };
    Some(if !passed {
        (name.into(), Outcome::Failed)
    } else if let Some((name, reason)) = directive("SKIP") {
        (name, Outcome::Skipped(reason))
    } else if let Some((name, reason)) = directive("XFAIL") {
        (name, Outcome::Expected(reason))
    } else {
        (name.into(), Outcome::Passed)
    })
}
