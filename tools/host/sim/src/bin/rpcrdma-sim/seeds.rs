// SPDX-License-Identifier: GPL-2.0

//! Runs many seeds, each in a process, and stops at the first that fails.

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rpcrdma_sim::{Play, Seen};

use crate::shrink::shrink;
use crate::SEEN;

/// The seconds for which a failure is shrunk.
const SHRINK: u64 = 30;

/// The seconds between two lines about progress.
const PROGRESS: u64 = 60;

/// The sums of the runs of a play.
#[derive(Clone, Default)]
struct Sums {
    seeds: u64,
    /// As [`Seen::numbers`], and then the nanoseconds of processor time.
    numbers: Vec<u64>,
}

impl Sums {
    fn add(&mut self, seeds: u64, numbers: &[u64]) {
        self.seeds += seeds;
        self.numbers.resize(numbers.len(), 0);
        for (sum, number) in self.numbers.iter_mut().zip(numbers) {
            *sum += number;
        }
    }

    fn steps(&self) -> u64 {
        self.numbers.first().copied().unwrap_or(0)
    }

    fn nanoseconds(&self) -> u64 {
        self.numbers.last().copied().unwrap_or(0)
    }

    /// Steps in a minute of processor time.
    fn rate(&self) -> u64 {
        let rate =
            u128::from(self.steps()) * 60_000_000_000 / u128::from(self.nanoseconds().max(1));
        rate as u64
    }
}

/// The names of the numbers.
fn names() -> impl Iterator<Item = &'static str> {
    Seen::default().numbers().into_iter().map(|(name, _)| name)
}

/// Runs a seed; its numbers, or `None` if it fails.
fn quiet(play: &Play, seed: u64) -> Option<Vec<u64>> {
    let this = std::env::current_exe().expect("this program");
    let output = Command::new(this)
        .args([play.name, &seed.to_string(), "quiet"])
        .output()
        .expect("this program can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers = text.lines().find_map(|line| line.strip_prefix(SEEN))?;
    let numbers = numbers.split(' ').map(|number| number.parse().unwrap_or(0));
    output.status.success().then(|| numbers.collect())
}

/// Tells the story of a seed that fails: that of the shortest run which breaks the same law.
fn tell(play: &Play, seed: u64) -> ExitCode {
    let this = std::env::current_exe().expect("this program");
    let name = format!("rpcrdma-sim-{}-{seed}", play.name);
    let path = std::env::temp_dir().join(name);
    let shrunk = shrink(play, seed, SHRINK).is_some_and(|short| short.write(&path).is_ok());
    let mut command = Command::new(this);
    if shrunk {
        let _ = command.arg("replay").arg(&path).status();
        println!("make sim REPLAY={}", path.display());
    } else {
        let _ = command.args([play.name, &seed.to_string()]).status();
    }
    println!("make sim PLAY={} SEED={seed}", play.name);
    ExitCode::FAILURE
}

/// Runs seeds of a play from `first` on.
pub(crate) fn many(play: &Play, first: u64, count: u64) -> ExitCode {
    let mut sums = Sums::default();
    for seed in first..first + count {
        match quiet(play, seed) {
            Some(numbers) => sums.add(1, &numbers),
            None => return tell(play, seed),
        }
    }
    let sums = names().zip(&sums.numbers);
    let sums: Vec<String> = sums.map(|(name, sum)| format!("{name}={sum}")).collect();
    println!("{} seeds={count} {}", play.name, sums.join(" "));
    ExitCode::SUCCESS
}

/// What the workers of [`fresh`] share.
struct Progress {
    next: u64,
    sums: Vec<Sums>,
    failed: Option<(usize, u64)>,
    told: Instant,
}

/// Runs seeds that were not used before, of each play in turn, on all processors. At the end prints
/// a table.
pub(crate) fn fresh(plays: Vec<&Play>, seconds: u64) -> ExitCode {
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = epoch.map_or(0, |since| since.as_secs()) << 24;
    println!("# seeds from {first} on");
    let progress = Mutex::new(Progress {
        next: 0,
        sums: vec![Sums::default(); plays.len()],
        failed: None,
        told: start,
    });
    let worker = || loop {
        let nth = {
            let mut shared = progress.lock().expect("no panic");
            if shared.failed.is_some() || Instant::now() >= end {
                break;
            }
            shared.next += 1;
            shared.next - 1
        };
        let (play, seed) = (nth as usize % plays.len(), first + nth / plays.len() as u64);
        let numbers = quiet(plays[play], seed);
        let mut shared = progress.lock().expect("no panic");
        match numbers {
            Some(numbers) => shared.sums[play].add(1, &numbers),
            None => {
                shared.failed.get_or_insert((play, seed));
            }
        }
        if shared.told.elapsed().as_secs() >= PROGRESS {
            shared.told = Instant::now();
            let all = total(&shared.sums);
            println!(
                "# {} s: {} seeds, {} steps, {} steps a minute of processor time",
                start.elapsed().as_secs(),
                all.seeds,
                all.steps(),
                all.rate()
            );
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    let shared = progress.into_inner().expect("no panic");
    if let Some((play, seed)) = shared.failed {
        return tell(plays[play], seed);
    }
    let heads: Vec<&str> = names().collect();
    println!("play\tseeds\t{}\tmilliseconds", heads.join("\t"));
    for (play, sums) in plays.iter().zip(&shared.sums) {
        let (nanoseconds, numbers) = sums.numbers.split_last().unwrap_or((&0, &[]));
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        println!(
            "{}\t{}\t{}\t{}",
            play.name,
            sums.seeds,
            numbers.join("\t"),
            nanoseconds / 1_000_000
        );
    }
    let all = total(&shared.sums);
    println!(
        "# {} seeds, {} steps, {} steps a minute of processor time, no failure",
        all.seeds,
        all.steps(),
        all.rate()
    );
    ExitCode::SUCCESS
}

fn total(sums: &[Sums]) -> Sums {
    let mut all = Sums::default();
    for sums in sums {
        if !sums.numbers.is_empty() {
            all.add(sums.seeds, &sums.numbers);
        }
    }
    all
}
