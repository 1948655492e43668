// SPDX-License-Identifier: GPL-2.0

//! A run that has failed, as a file: the play, the seed, the steps, why, and all choices.

use std::fmt::Write;
use std::path::Path;

use rpcrdma_sim::{chance, Play};

use crate::find;

/// A run that has failed.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) play: &'static Play,
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    pub(crate) why: String,
    pub(crate) choices: Vec<u64>,
}

impl Failure {
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let mut lines = text.lines();
        let mut words = lines.next()?.split(' ');
        let play = find(words.next()?)?;
        let seed = words.next()?.parse().ok()?;
        let steps = words.next()?.parse().ok()?;
        let why = lines.next()?.to_owned();
        let choices = lines.flat_map(|line| line.split(' '));
        Some(Self {
            play,
            seed,
            steps,
            why,
            choices: choices.filter_map(|number| number.parse().ok()).collect(),
        })
    }

    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let why = self.why.replace('\n', " ");
        let mut text = format!("{} {} {}\n{why}\n", self.play.name, self.seed, self.steps);
        for line in self.choices.chunks(20) {
            let numbers: Vec<String> = line.iter().map(u64::to_string).collect();
            let _ = writeln!(text, "{}", numbers.join(" "));
        }
        std::fs::write(path, text)
    }

    /// Runs the play with the choices, in this process; what fails, if the run does.
    pub(crate) fn replay(&self, story: bool, limit: u64) -> Option<Self> {
        chance::replay(self.choices.clone(), limit);
        Self::of_run(self.play, self.seed, story)
    }

    /// Runs a play in this process, and records its choices.
    pub(crate) fn of_run(play: &'static Play, seed: u64, story: bool) -> Option<Self> {
        chance::record();
        let why = rpcrdma_sim::run(play, seed, story).err()?;
        Some(Self {
            play,
            seed,
            steps: rpcrdma_sim::steps(),
            why,
            choices: chance::recorded(),
        })
    }

    /// The law that does not hold, without what differs from run to run: numbers, and what is in
    /// brackets.
    pub(crate) fn law(&self) -> String {
        for law in ["waits for ever", "no end", "left after rmmod"] {
            if self.why.contains(law) {
                return law.into();
            }
        }
        let mut depth = 0_i32;
        let mut law = String::new();
        for c in self.why.chars() {
            match c {
                '[' | '{' | '(' => depth += 1,
                ']' | '}' | ')' => depth -= 1,
                _ if depth == 0 && c.is_alphabetic() => law.push(c),
                _ if law.ends_with(' ') => {}
                _ => law.push(' '),
            }
        }
        // What is left of hexadecimal numbers.
        let words = law.split(' ').filter(|word| word.len() > 3);
        words.collect::<Vec<_>>().join(" ")
    }

    /// What is to become as small as it can.
    pub(crate) fn size(&self) -> (u64, usize) {
        let taken = self.choices.iter().filter(|choice| **choice != 0).count();
        (self.steps + taken as u64, self.choices.len())
    }
}
