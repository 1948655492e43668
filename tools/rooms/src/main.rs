// SPDX-License-Identifier: GPL-2.0

//! Checks which files under `rust/` import which: a room imports only the rooms that `rooms.toml`
//! allows, and files import each other in circles only within the cores that it names.
//!
//! Usage: `rpcrdma-rooms RULES TREE`. Prints each violation on a line of its own, with the place.

mod graph;
mod module;
mod rules;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [rules, tree] = args.as_slice() else {
        eprintln!("usage: rpcrdma-rooms RULES TREE");
        return ExitCode::from(2);
    };
    match check(Path::new(rules), Path::new(tree)) {
        Ok(violations) if violations.is_empty() => ExitCode::SUCCESS,
        Ok(violations) => {
            for violation in violations {
                println!("{violation}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(rules: &Path, tree: &Path) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let rules = rules::Rules::read(rules)?;
    let modules = module::read_all(tree)?;
    let imports = graph::imports(&modules);
    let mut violations = rules.forbidden(&imports);
    violations.extend(rules.circles(&imports, &modules));
    Ok(violations)
}
