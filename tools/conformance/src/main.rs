// SPDX-License-Identifier: GPL-2.0

//! The tables under `Documentation/`: requirements of the protocol, bug classes, and counterparts
//! of the C module. Checks that the names in them exist, and writes the pages that show them.

use std::{
    collections::BTreeSet,
    env,
    fmt::Display,
    fs::{self, DirEntry},
    path::Path,
    process::ExitCode,
};

mod check;
mod data;
mod judge;
mod outputs;
mod pages;
mod plan;
mod tree;

use data::{Compliance, Guard, Tables};
use judge::Judgement;
use outputs::Outputs;
use plan::Plan;
use tree::{c, Tree};

/// `check ROOT [KERNEL]`, `missing ROOT KERNEL`, `pages ROOT DIRECTORY`, or
/// `judge ROOT ROWS OUTPUTS SUITE...`. The suite `all` stands for all suites of the plan.
fn main() -> ExitCode {
    let args: Vec<_> = env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["check", root] => check(root.as_ref(), None),
        ["check", root, kernel] => check(root.as_ref(), Some(kernel.as_ref())),
        ["missing", root, kernel] => missing(root.as_ref(), kernel.as_ref()),
        ["pages", root, dir] => pages(root.as_ref(), dir.as_ref()),
        ["judge", root, rows, dir, ref suites @ ..] => {
            judge(root.as_ref(), rows.as_ref(), dir.as_ref(), suites)
        }
        _ => Err(
            "usage: check ROOT [KERNEL] | missing ROOT KERNEL | pages ROOT DIRECTORY | \
            judge ROOT ROWS OUTPUTS SUITE..."
                .into(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a summary.
///
/// # Errors
///
/// All errors that the check finds.
fn check(root: &Path, kernel: Option<&Path>) -> Result<(), String> {
    let tables = Tables::read(root)?;
    let tree = Tree::read(root).map_err(|err| format!("{}: {err}", root.display()))?;
    let plan = Plan::read(root)?;
    let mut findings = check::all(&tables, &tree, &plan, kernel.filter(|dir| dir.is_dir()));
    findings.extend(plan.stale(root, &tree));

    let states: Vec<_> = tables
        .each_requirement()
        .map(|(_, req)| req.state)
        .collect();
    print_summary("requirements", Compliance::ALL, &states);
    let states: Vec<_> = tables.each_bug().map(|(_, bug)| bug.state).collect();
    print_summary("bug classes", Guard::ALL, &states);
    let rows = tables.ports.iter();
    let names: BTreeSet<_> = rows.map(|row| (&row.c_file, &row.c_name)).collect();
    println!("{} functions and structures of the C module", names.len());
    if findings.is_empty() {
        Ok(())
    } else {
        Err(findings.to_string())
    }
}

/// Prints KTAP about the run whose outputs are the files `suites` in `dir`, and writes the result
/// of each record to `rows`.
///
/// # Errors
///
/// A message about the first file that cannot be read or written.
fn judge(root: &Path, rows: &Path, dir: &Path, suites: &[&str]) -> Result<(), String> {
    let tables = Tables::read(root)?;
    let tree = Tree::read(root).map_err(|err| format!("{}: {err}", root.display()))?;
    let plan = Plan::read(root)?;
    let outputs = Outputs::read(dir, suites, &plan)?;
    let judgement = Judgement::new(&tables, &tree, &plan, &outputs);
    judgement.print();
    fs::write(rows, judgement.rows()).map_err(|err| format!("{}: {err}", rows.display()))
}

/// Prints the functions of the C module that have no row.
///
/// # Errors
///
/// A message about the first file that cannot be read.
fn missing(root: &Path, kernel: &Path) -> Result<(), String> {
    let dir = kernel.join(data::C_MODULE);
    let message = |err| format!("{}: {err}", dir.display());
    let tables = Tables::read(root)?;
    let mut entries: Vec<_> = fs::read_dir(&dir).map_err(message)?.flatten().collect();
    entries.sort_by_key(DirEntry::file_name);

    for entry in entries {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.ends_with(".c") {
            let text = fs::read_to_string(entry.path()).map_err(message)?;
            let is_row = |name: &str| {
                let mut rows = tables.ports.iter();
                rows.any(|row| row.c_file == file && row.c_name == name)
            };
            for name in c::functions(&text) {
                if !is_row(&name) {
                    println!("{file}: {name}");
                }
            }
        }
    }
    Ok(())
}

/// Prints one line: the number of records in each state.
fn print_summary<T: PartialEq + Display>(what: &str, all: &[T], states: &[T]) {
    let count = |one: &T| states.iter().filter(|state| *state == one).count();
    let counts: Vec<_> = all
        .iter()
        .map(|one| format!("{one}: {}", count(one)))
        .collect();
    println!("{} of {} {what}", counts.join(", "), states.len());
}

/// Writes the pages below `dir`.
///
/// # Errors
///
/// A message about the first file that cannot be read or written.
fn pages(root: &Path, dir: &Path) -> Result<(), String> {
    for (name, text) in pages::all(&Tables::read(root)?) {
        let path = dir.join(name);
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, text))
            .map_err(|err| format!("{}: {err}", path.display()))?;
    }
    Ok(())
}
