// SPDX-License-Identifier: GPL-2.0

//! C files in the kernel's style.

use std::collections::BTreeSet;

use super::words;

/// A row of a table of the probe.
#[derive(Debug)]
pub(crate) struct Case {
    /// The requirements that the case tests.
    pub(crate) tags: Vec<String>,
    /// All identifiers of the row.
    pub(super) words: BTreeSet<String>,
}

/// Names of functions. A definition starts in the first column, and a declaration ends with `;`.
pub(crate) fn functions(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .filter(|line| !line.trim_end().ends_with(';'))
        .filter_map(|line| words(line.split_once('(')?.0).last())
        .map(String::from)
        .collect()
}

/// Rows `{ "R8166-3.4.1-1 ...", "title", function },`.
pub(super) fn cases(text: &str) -> Vec<Case> {
    let rows = text.split("\n\t{ \"").skip(1);
    rows.map(|row| {
        let row = row.split("},\n").next().unwrap_or_default();
        // Strings and code take turns; the first string has lost its opening quote.
        let mut parts = row.split('"');
        let tags = parts.next().unwrap_or_default().split(' ');
        Case {
            tags: tags.filter(|tag| *tag != "-").map(String::from).collect(),
            words: parts.step_by(2).flat_map(words).map(String::from).collect(),
        }
    })
    .collect()
}
