// SPDX-License-Identifier: GPL-2.0

//! C files in the kernel's style.

use std::collections::BTreeSet;

use super::words;

/// A row of a table of the probe.
#[derive(Debug)]
pub(crate) struct Case {
    /// The requirements that the case tests.
    pub(crate) tags: Vec<String>,
    /// The title, by which results name the case.
    pub(crate) title: String,
    /// All identifiers of the row.
    pub(crate) words: BTreeSet<String>,
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
        let mut strings = vec![String::new()];
        let mut code = BTreeSet::new();
        // Strings and code take turns; the first string has lost its opening quote. Strings with
        // nothing between them are one.
        for (number, part) in row.split('"').enumerate() {
            if number % 2 == 1 {
                if !part.trim().is_empty() {
                    strings.push(String::new());
                }
                code.extend(words(part).map(String::from));
            } else if let Some(last) = strings.last_mut() {
                last.push_str(part);
            }
        }
        let tags = strings[0].split(' ').filter(|tag| !["", "-"].contains(tag));
        Case {
            tags: tags.map(String::from).collect(),
            title: strings.get(1).cloned().unwrap_or_default(),
            words: code,
        }
    })
    .collect()
}

/// The names of the groups of cases that a file of the probe defines.
pub(super) fn groups(text: &str) -> BTreeSet<String> {
    let starts = text.split("\nconst struct group group_").skip(1);
    starts
        .filter_map(|start| words(start).next())
        .map(String::from)
        .collect()
}
