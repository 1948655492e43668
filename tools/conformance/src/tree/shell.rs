// SPDX-License-Identifier: GPL-2.0

//! Shell scripts.

use std::collections::BTreeSet;

use super::words;

/// Names of functions.
pub(super) fn functions(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.split_once("()"))
        .map(|(name, _)| name)
        .filter(|name| words(name).eq([*name]))
        .map(String::from)
        .collect()
}

/// Cases that a selftest runs unless its arguments name others: all words after its last function.
pub(super) fn cases(text: &str) -> BTreeSet<String> {
    let main = text.rsplit("\n}\n").next().unwrap_or_default();
    main.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(words)
        .map(String::from)
        .collect()
}
