// SPDX-License-Identifier: GPL-2.0

//! The command `nfsrdma`.

use std::process::ExitCode;

use clap::Parser;
use nfsrdma::cli::{run, Options};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            eprintln!("    next: {}", error.next());
            ExitCode::FAILURE
        }
    }
}
