// SPDX-License-Identifier: GPL-2.0

//! The graph of imports: which file names items of which other file.

use std::collections::{BTreeMap, BTreeSet};

use crate::module::{CratePath, Module};

/// A use of one file by another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    /// The module that imports.
    pub(crate) from: CratePath,
    /// The module that it imports from.
    pub(crate) to: CratePath,
    /// The file and line of the use.
    pub(crate) place: String,
    /// The item, as the code names it.
    pub(crate) item: String,
    /// A call of a method that `to` adds to a type of another file. It needs no import.
    pub(crate) hidden: bool,
}

/// All imports between different files.
pub(crate) fn imports(modules: &BTreeMap<CratePath, Module>) -> BTreeSet<Import> {
    let mut found = BTreeSet::new();
    for (from, module) in modules {
        for named in &module.named {
            let Some((_, parent)) = named.path.split_last() else {
                continue;
            };
            let to = defining(modules, &named.path).unwrap_or_else(|| parent.to_vec());
            if to != *from {
                found.insert(Import {
                    from: from.clone(),
                    to,
                    place: format!("{}:{}", module.file, named.line),
                    item: named.path.join("::"),
                    hidden: false,
                });
            }
        }
    }
    found.extend(hidden(modules));
    found
}

/// The module in which the item at `path` is defined, re-exports followed.
fn defining(modules: &BTreeMap<CratePath, Module>, path: &[String]) -> Option<CratePath> {
    let mut path = path.to_vec();
    for _ in 0..8 {
        let depth = (0..=path.len())
            .rev()
            .find(|&n| modules.contains_key(&path[..n]))?;
        let (at, rest) = path.split_at(depth);
        match rest.first().and_then(|name| modules[at].exports.get(name)) {
            Some(target) if *target != path => {
                path = [target.as_slice(), &rest[1..]].concat();
            }
            _ => return Some(at.to_vec()),
        }
    }
    None
}

/// Finds calls of methods that a file adds to a type of another file. A call does not show the
/// type, so only methods whose name is unique are considered.
fn hidden(modules: &BTreeMap<CratePath, Module>) -> Vec<Import> {
    let mut by_name: BTreeMap<&str, Vec<(&CratePath, &str)>> = BTreeMap::new();
    for (at, module) in modules {
        for (of, method) in &module.methods {
            by_name.entry(method).or_default().push((at, of));
        }
    }
    let mut found = Vec::new();
    for (method, definitions) in by_name {
        let [(to, of)] = definitions.as_slice() else {
            continue;
        };
        if modules[*to].types.iter().any(|t| t == of) {
            continue;
        }
        for (from, module) in modules {
            // Between rooms such a call needs an import of the type, which the rules check.
            if from == *to || from.first() != to.first() {
                continue;
            }
            if let Some(line) = module.calls.get(method) {
                found.push(Import {
                    from: from.clone(),
                    to: (*to).clone(),
                    place: format!("{}:{line}", module.file),
                    item: format!("{of}::{method}"),
                    hidden: true,
                });
            }
        }
    }
    found
}
