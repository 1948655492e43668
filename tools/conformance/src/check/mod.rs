// SPDX-License-Identifier: GPL-2.0

//! Checks the tables against the tree.

mod ports;
mod records;

use std::{collections::BTreeSet, fmt, path::Path};

use crate::{data::Tables, plan::Plan, tree::Tree};

/// The errors found, one line each, sorted.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeSet<String>);

impl Findings {
    /// Adds an error of the record `id` in the file `path`.
    fn add(&mut self, path: impl fmt::Display, id: &str, error: impl fmt::Display) {
        self.0.insert(format!("{path}: {id}: {error}"));
    }

    /// Adds whole lines.
    pub(crate) fn extend(&mut self, lines: impl IntoIterator<Item = String>) {
        self.0.extend(lines);
    }

    /// Whether there are no errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(String::as_str).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Checks all tables. C names are looked up in the source of `kernel`, if there is one.
pub(crate) fn all(tables: &Tables, tree: &Tree, plan: &Plan, kernel: Option<&Path>) -> Findings {
    let mut findings = Findings(tree.unparsed.iter().cloned().collect());
    records::requirements(tables, tree, &mut findings);
    records::bugs(tables, tree, &mut findings);
    records::planned(tables, tree, plan, &mut findings);
    records::probe_tags(tables, tree, &mut findings);
    ports::rows(tables, tree, kernel, &mut findings);
    ports::headers(tables, tree, &mut findings);
    findings
}
