// SPDX-License-Identifier: GPL-2.0

//! The tables under `Documentation/`: requirements of the protocol, classes of bugs, and where
//! functions of the C module are here. Checks what they say against the tree, and makes the
//! pages that show them.

use std::{collections::BTreeSet, env, fs, path::Path, process::ExitCode};

mod check;
mod data;
mod pages;
mod tree;

use data::{Compliance, Guard, Tables};

/// `check ROOT [KERNEL]`, `missing ROOT KERNEL` or `pages ROOT DIRECTORY`.
fn main() -> ExitCode {
    let args: Vec<_> = env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["check", root] => check(root.as_ref(), None),
        ["check", root, kernel] => check(root.as_ref(), Some(kernel.as_ref())),
        ["missing", root, kernel] => missing(root.as_ref(), kernel.as_ref()),
        ["pages", root, dir] => pages(root.as_ref(), dir.as_ref()),
        _ => Err("usage: check ROOT [KERNEL] | missing ROOT KERNEL | pages ROOT DIRECTORY".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn check(root: &Path, kernel: Option<&Path>) -> Result<(), String> {
    let tables = Tables::read(root)?;
    let tree = tree::Tree::read(root).map_err(|err| format!("{}: {err}", root.display()))?;
    let wrong = check::all(&tables, &tree, kernel.filter(|dir| dir.is_dir()));

    let states = tables.each_requirement().map(|(_, it)| it.state);
    summary("requirements", Compliance::ALL, states);
    summary(
        "bug classes",
        Guard::ALL,
        tables.each_bug().map(|(_, it)| it.state),
    );
    let ports: BTreeSet<_> = tables
        .ports
        .iter()
        .map(|it| (&it.c_file, &it.c_name))
        .collect();
    println!("{} functions and structures of the C module", ports.len());
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.into_iter().collect::<Vec<_>>().join("\n"))
}

/// Prints the functions of the C module that have no row.
fn missing(root: &Path, kernel: &Path) -> Result<(), String> {
    let dir = kernel.join(data::C_MODULE);
    let wrong = |err| format!("{}: {err}", dir.display());
    let tables = Tables::read(root)?;
    let mut files: Vec<_> = fs::read_dir(&dir).map_err(wrong)?.flatten().collect();
    files.sort_by_key(|entry| entry.file_name());
    for entry in files {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".c") {
            let text = fs::read_to_string(entry.path()).map_err(wrong)?;
            for function in tree::c_functions(&text) {
                if !tables
                    .ports
                    .iter()
                    .any(|it| it.c_file == name && it.c_name == function)
                {
                    println!("{name}: {function}");
                }
            }
        }
    }
    Ok(())
}

/// One line: how many there are of each state.
fn summary<T: Copy + PartialEq + std::fmt::Display>(
    what: &str,
    all: &[T],
    states: impl Iterator<Item = T>,
) {
    let states: Vec<_> = states.collect();
    let count = |one: &T| states.iter().filter(|it| *it == one).count();
    let counts: Vec<_> = all
        .iter()
        .map(|one| format!("{one}: {}", count(one)))
        .collect();
    println!("{} of {} {what}", counts.join(", "), states.len());
}

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
