// SPDX-License-Identifier: GPL-2.0

//! Finds a shorter run that breaks the same law: choices are deleted, or become 0, the plainest.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rpcrdma_sim::Play;

use crate::failure::Failure;

/// Shrinks a failure, for a time.
struct Shrinker {
    best: Failure,
    law: String,
    end: Instant,
    tries: u64,
    input: PathBuf,
    output: PathBuf,
}

impl Shrinker {
    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Runs with these choices; whether the same law is broken in a smaller run, which is the best
    /// one then.
    fn try_choices(&mut self, choices: Vec<u64>) -> bool {
        self.tries += 1;
        let candidate = Failure {
            choices,
            ..self.best.clone()
        };
        let _ = std::fs::remove_file(&self.output);
        candidate.write(&self.input).expect("a file can be written");
        let limit = (2 * self.best.steps + 1000).to_string();
        let this = std::env::current_exe().expect("this program");
        let _ = Command::new(this)
            .arg("replay")
            .arg(&self.input)
            .arg(&self.output)
            .arg(limit)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let Some(found) = Failure::read(&self.output) else {
            return false;
        };
        let better = found.law() == self.law && found.size() < self.best.size();
        if better {
            self.best = found;
        }
        better
    }

    /// Changes each block of `size` choices by `change`, from the last one on.
    fn pass(&mut self, size: usize, change: fn(&[u64], usize, usize) -> Option<Vec<u64>>) -> bool {
        let mut any = false;
        let mut end = self.best.choices.len();
        while end > 0 && !self.is_over() {
            let start = end.saturating_sub(size);
            if let Some(choices) = change(&self.best.choices, start, end) {
                any |= self.try_choices(choices);
            }
            end = start.min(self.best.choices.len());
        }
        any
    }

    fn run(&mut self) {
        loop {
            let mut any = false;
            let mut size = (self.best.choices.len() / 2).max(1);
            while !self.is_over() {
                any |= self.pass(size, delete);
                any |= self.pass(size, reset);
                if size == 1 {
                    break;
                }
                size /= 2;
            }
            if !any || self.is_over() {
                break;
            }
        }
    }
}

/// All choices but those from `start` to `end`.
fn delete(choices: &[u64], start: usize, end: usize) -> Option<Vec<u64>> {
    let mut fewer = choices.to_vec();
    fewer.drain(start..end);
    Some(fewer)
}

/// The same with 0 for those from `start` to `end`, unless they are.
fn reset(choices: &[u64], start: usize, end: usize) -> Option<Vec<u64>> {
    let differs = choices[start..end].iter().any(|choice| *choice != 0);
    let mut plain = choices.to_vec();
    plain[start..end].fill(0);
    differs.then_some(plain)
}

/// Shrinks a run that fails, for so many seconds at most. `None` if it does not fail again.
pub(crate) fn shrink(play: &Play, seed: u64, seconds: u64) -> Option<Failure> {
    let file = |what: &str| {
        let name = format!("rpcrdma-sim-{}-{what}", std::process::id());
        std::env::temp_dir().join(name)
    };
    let (input, output) = (file("in"), file("out"));
    let this = std::env::current_exe().expect("this program");
    let _ = Command::new(this)
        .args(["record", play.name, &seed.to_string()])
        .arg(&output)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let best = Failure::read(&output)?;
    let before = best.steps;
    let mut shrinker = Shrinker {
        law: best.law(),
        best,
        end: Instant::now() + Duration::from_secs(seconds),
        tries: 0,
        input,
        output,
    };
    shrinker.run();
    let _ = std::fs::remove_file(&shrinker.input);
    let _ = std::fs::remove_file(&shrinker.output);
    println!(
        "{}: seed {seed} fails after {before} steps, and the same law after {}, with {} choices \
         that are not the plainest; {} runs",
        play.name,
        shrinker.best.steps,
        shrinker
            .best
            .choices
            .iter()
            .filter(|choice| **choice != 0)
            .count(),
        shrinker.tries
    );
    Some(shrinker.best)
}
