// SPDX-License-Identifier: GPL-2.0

//! Runs a play.
//!
//! ```text
//! rpcrdma-sim PLAY SEED         tells the story of one run
//! rpcrdma-sim PLAY SEED COUNT   runs so many seeds, and tells the story of the first that fails
//! ```
//!
//! Each run is a process of its own, since a module is loaded once: its statics are never reset.

use std::process::{Command, ExitCode};

use rpcrdma_sim::{run, Play, PLAYS};

/// What a process prints after a run, before the numbers.
const SEEN: &str = "seen ";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let play = args
        .first()
        .and_then(|name| PLAYS.iter().find(|play| play.name == *name));
    let number = |at: usize| args.get(at).and_then(|text| text.parse::<u64>().ok());
    match (play, number(1), args.len()) {
        (Some(play), Some(seed), 2) => one(play, seed, true),
        (Some(play), Some(seed), 3) if args[2] == "quiet" => one(play, seed, false),
        (Some(play), Some(seed), 3) if number(2).is_some() => {
            many(play, seed, number(2).unwrap_or(0))
        }
        _ => {
            let names: Vec<&str> = PLAYS.iter().map(|play| play.name).collect();
            eprintln!(
                "usage: rpcrdma-sim PLAY SEED [COUNT]\nplays: {}",
                names.join(" ")
            );
            ExitCode::from(2)
        }
    }
}

/// Runs one seed in this process.
fn one(play: &Play, seed: u64, story: bool) -> ExitCode {
    match run(play, seed, story) {
        Ok(seen) => {
            let numbers = seen.numbers().map(|(_, number)| number.to_string());
            println!("{SEEN}{}", numbers.join(" "));
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{}: seed {seed}: {why}", play.name);
            ExitCode::FAILURE
        }
    }
}

/// Runs each seed in a process.
fn many(play: &Play, first: u64, count: u64) -> ExitCode {
    let this = std::env::current_exe().expect("this program");
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for seed in first..first + count {
        let seed_text = seed.to_string();
        let output = Command::new(&this)
            .args([play.name, &seed_text, "quiet"])
            .output()
            .expect("this program can be run");
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers = text.lines().find_map(|line| line.strip_prefix(SEEN));
        let (true, Some(numbers)) = (output.status.success(), numbers) else {
            let _ = Command::new(&this).args([play.name, &seed_text]).status();
            println!("make sim PLAY={} SEED={seed}", play.name);
            return ExitCode::FAILURE;
        };
        let numbers = numbers.split(' ').map(|number| number.parse().unwrap_or(0));
        let names = rpcrdma_sim::Seen::default().numbers().map(|(name, _)| name);
        if sums.is_empty() {
            sums = names.map(|name| (name, 0)).to_vec();
        }
        for (sum, number) in sums.iter_mut().zip(numbers) {
            sum.1 += number;
        }
    }
    let sums: Vec<String> = sums
        .iter()
        .map(|(name, sum)| format!("{name}={sum}"))
        .collect();
    println!("{} seeds={count} {}", play.name, sums.join(" "));
    ExitCode::SUCCESS
}
