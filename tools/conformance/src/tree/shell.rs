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

/// Cases that a selftest runs unless its arguments name others: all words after its last function,
/// except commands.
pub(super) fn cases(text: &str) -> BTreeSet<String> {
    let lines: Vec<_> = text.lines().collect();
    let main = lines
        .iter()
        .rposition(|line| line.starts_with('}'))
        .map_or(0, |end| end + 1);
    lines[main..]
        .iter()
        .filter(|line| !line.starts_with('#') && !line.starts_with("trap "))
        .flat_map(|line| words(line).skip(usize::from(line.starts_with(char::is_alphabetic))))
        .map(String::from)
        .collect()
}
