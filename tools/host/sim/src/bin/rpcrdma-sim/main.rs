// SPDX-License-Identifier: GPL-2.0

//! Runs plays.
//!
//! ```text
//! rpcrdma-sim PLAY SEED               tells the story of one run
//! rpcrdma-sim PLAY SEED COUNT         runs so many seeds, and tells the first that fails
//! rpcrdma-sim for SECONDS [PLAY...]   runs fresh seeds of these plays, or of all, for so long
//! rpcrdma-sim shrink PLAY SEED SECONDS FILE  writes the shortest run that breaks the same law
//! rpcrdma-sim replay FILE             tells its story
//! ```
//!
//! Each run is a process of its own, since a module is loaded once: its statics are never reset.

mod failure;
mod seeds;
mod shrink;

use std::path::Path;
use std::process::ExitCode;

use rpcrdma_sim::{run, Play, PLANTED, PLAYS};

use failure::Failure;

/// What a process prints after a run, before the numbers and the nanoseconds of processor time.
const SEEN: &str = "seen ";

fn find(name: &str) -> Option<&'static Play> {
    PLAYS
        .iter()
        .chain([&PLANTED])
        .find(|play| play.name == name)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    parse(&args).unwrap_or_else(|| {
        let names: Vec<&str> = PLAYS.iter().map(|play| play.name).collect();
        eprintln!(
            "usage: rpcrdma-sim PLAY SEED [COUNT] | for SECONDS [PLAY...] | \
             shrink PLAY SEED SECONDS FILE | replay FILE\nplays: {}",
            names.join(" ")
        );
        ExitCode::from(2)
    })
}

/// Does what the arguments say; `None` if they are wrong.
fn parse(args: &[&str]) -> Option<ExitCode> {
    Some(match args {
        ["for", seconds, names @ ..] => {
            let plays: Option<Vec<&Play>> = names.iter().map(|name| find(name)).collect();
            let plays = plays.filter(|plays| !plays.is_empty());
            let all = || PLAYS.iter().collect();
            if names.is_empty() {
                seeds::fresh(all(), seconds.parse().ok()?)
            } else {
                seeds::fresh(plays?, seconds.parse().ok()?)
            }
        }
        ["record", name, seed, path] => {
            let failure = Failure::of_run(find(name)?, seed.parse().ok()?, false);
            store(failure, Path::new(path))
        }
        ["shrink", name, seed, seconds, path] => {
            let seconds = seconds.parse().ok()?;
            let failure = shrink::shrink(find(name)?, seed.parse().ok()?, seconds);
            store(failure, Path::new(path))
        }
        ["replay", path] => {
            let failure = Failure::read(Path::new(path))?.replay(true, u64::MAX);
            match failure {
                Some(failure) => {
                    println!("{}", failure.why);
                    ExitCode::FAILURE
                }
                None => {
                    println!("no law is broken");
                    ExitCode::SUCCESS
                }
            }
        }
        ["replay", path, output, limit] => {
            let failure = Failure::read(Path::new(path))?.replay(false, limit.parse().ok()?);
            store(failure, Path::new(output))
        }
        [name, seed] => one(find(name)?, seed.parse().ok()?, true),
        [name, seed, "quiet"] => one(find(name)?, seed.parse().ok()?, false),
        [name, seed, count] => seeds::many(find(name)?, seed.parse().ok()?, count.parse().ok()?),
        _ => return None,
    })
}

/// Runs one seed in this process.
fn one(play: &Play, seed: u64, story: bool) -> ExitCode {
    match run(play, seed, story) {
        Ok(seen) => {
            let numbers = seen.numbers().map(|(_, number)| number.to_string());
            println!("{SEEN}{} {}", numbers.join(" "), processor_time());
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{}: seed {seed}: {why}", play.name);
            ExitCode::FAILURE
        }
    }
}

/// The nanoseconds of processor time that this process has used; 0 if the kernel does not say.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split(' ').next();
    first.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Writes a failure to a file, if there is one.
fn store(failure: Option<Failure>, path: &Path) -> ExitCode {
    match failure.map(|failure| failure.write(path)) {
        None => ExitCode::SUCCESS,
        Some(Ok(())) => ExitCode::FAILURE,
        Some(Err(error)) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::from(2)
        }
    }
}
