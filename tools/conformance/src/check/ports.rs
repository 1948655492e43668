// SPDX-License-Identifier: GPL-2.0

//! Checks the counterparts of the C module.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::Findings;
use crate::{
    data::{Port, Tables, C_HEADERS, C_MODULE, PORTS},
    tree::{File, Tree},
};

/// Checks that the C name and the item of each row exist.
pub(super) fn rows(tables: &Tables, tree: &Tree, kernel: Option<&Path>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    let mut sources = BTreeMap::new();

    for row in &tables.ports {
        let Port {
            c_file,
            c_name,
            file,
            item,
            note,
        } = row;
        let mut errors = Vec::new();
        if let Some(kernel) = kernel {
            let source = sources
                .entry(c_file)
                .or_insert_with(|| read_c(kernel, c_file));
            if !has_word(source, c_name) {
                errors.push(format!("not in {c_file}"));
            }
        }
        if !seen.insert((c_file, c_name, file, item)) {
            errors.push("has two rows".into());
        }
        if !file.is_empty() {
            let item = Some(item.as_str()).filter(|item| !item.is_empty());
            errors.extend(tree.find(file, item).err());
        } else if !item.is_empty() || note.is_empty() {
            errors.push("has neither a file nor a reason".into());
        }
        for error in errors {
            findings.add(PORTS, &format!("{c_file}, {c_name}"), error);
        }
    }
}

/// Checks the lines `C: file.c, function(), struct name` in the headers of Rust files: the table
/// has a row for each name and that file.
pub(super) fn headers(tables: &Tables, tree: &Tree, findings: &mut Findings) {
    for (path, file) in tree.files() {
        let File::Rust { c_lines, .. } = file else {
            continue;
        };
        for line in c_lines {
            let Some((c_file, names)) = parse_header(line) else {
                let example = "C: frwr_ops.c, frwr_map(), struct rpcrdma_mr";
                findings.add(
                    path,
                    &format!("C: {line}"),
                    format_args!("expected the form \"{example}\""),
                );
                continue;
            };
            for name in names {
                let is_row =
                    |row: &Port| row.c_file == c_file && row.c_name == name && row.file == path;
                if !tables.ports.iter().any(is_row) {
                    let error = format_args!("{PORTS} has no row for {name} with this file");
                    findings.add(path, &format!("C: {c_file}"), error);
                }
            }
        }
    }
}

/// The C file and the names of a header line, as the table has them.
fn parse_header(line: &str) -> Option<(&str, Vec<&str>)> {
    let (c_file, names) = line.split_once(", ")?;
    if !c_file.ends_with(".c") && !c_file.ends_with(".h") {
        return None;
    }
    let names = names.split(", ").map(|name| match name.strip_suffix("()") {
        Some(function) => Some(function),
        None => name.starts_with("struct ").then_some(name),
    });
    Some((c_file, names.collect::<Option<_>>()?))
}

/// The text of a file of the C module, or of a header that it includes. Empty if there is none.
fn read_c(kernel: &Path, c_file: &str) -> String {
    let read = |dir| fs::read_to_string(kernel.join(dir).join(c_file));
    read(C_MODULE)
        .or_else(|_| read(C_HEADERS))
        .unwrap_or_default()
}

/// Whether `name` occurs in `source`, and not as a part of another name.
fn has_word(source: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(name).any(|(at, _)| {
        !source[..at].ends_with(is_part) && !source[at + name.len()..].starts_with(is_part)
    })
}
