// SPDX-License-Identifier: GPL-2.0

//! The commands and their options.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use clap::{Parser, Subcommand};
use serde::Serialize;

use crate::{
    doctor,
    error::Error,
    explain,
    finding::Level,
    model::{rate::Rates, sample::Sample, snapshot::Snapshot},
    recording::{self, Recorder},
    show,
    source::root::Root,
};

/// Shows the connections of NFS over RDMA, at both ends, and says what is wrong with them.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Options {
    /// Read the files of a capture, or those below a directory
    #[arg(long, global = true, hide = true, value_name = "PATH")]
    root: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show devices, mounts, connections and the server in tables
    Status {
        /// Print everything that is known as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show rates, again and again
    Watch {
        #[command(flatten)]
        every: Every,
        /// Print a line of JSON each time
        #[arg(long)]
        json: bool,
    },
    /// Say what was agreed, what limits it, what went wrong, and what to do
    ///
    /// Exit status: 1 if something is wrong.
    Explain {
        /// A directory on a mount, or the name or address of a server or client
        #[arg(value_name = "MOUNT|PEER")]
        subject: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say whether this machine is fit for NFS over RDMA: module, devices, network, settings
    ///
    /// Exit status: 1 if something is wrong.
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Record counters in a new file, for "nfsrdma graph"
    Record {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        every: Every,
    },
    /// Draw a recorded run: throughput, time of RPCs, credits
    Graph {
        /// The file that "nfsrdma record" has made
        file: PathBuf,
        /// The picture; default: FILE with the ending .svg
        #[arg(short, long, value_name = "SVG")]
        output: Option<PathBuf>,
    },
    /// Copy all that this command reads to a new file, for a report
    ///
    /// The file has names and addresses of servers and clients.
    Capture {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Every {
    /// Seconds between two looks
    #[arg(short, long, default_value = "2", value_parser = interval, value_name = "SECONDS")]
    interval: Duration,
    /// Stop after so many; default: when interrupted
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (0.1..=86_400.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or("0.1 to 86400 seconds are possible".to_string())
}

/// Runs a command.
///
/// # Errors
///
/// With the cause and the next step.
pub fn run(options: &Options) -> Result<ExitCode, Error> {
    let root = match &options.root {
        Some(path) => Root::at(path).map_err(Error::file(path))?,
        None => Root::live(),
    };
    match &options.command {
        Command::Status { json } => {
            let all = Snapshot::take(&root);
            output(*json, &all, |out| show::status::print(out, &all))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Watch { every, json } => watch(&root, every, *json),
        Command::Explain { subject, json } => {
            let all = Snapshot::take(&root);
            let case = explain::case(&all, &root, subject)?;
            let explanation = explain::explain(subject, &case);
            output(*json, &explanation, |out| {
                show::findings::explanation(out, &explanation, &all.missing)
            })?;
            Ok(status(
                explanation.faults.iter().map(|finding| finding.level),
            ))
        }
        Command::Doctor { json } => {
            let all = Snapshot::take(&root);
            let chapters = doctor::examine(&all);
            output(*json, &chapters, |out| {
                show::findings::chapters(out, &chapters, &all.missing)
            })?;
            let findings = chapters.iter().flat_map(|chapter| &chapter.findings);
            Ok(status(findings.map(|finding| finding.level)))
        }
        Command::Record { file, every } => record(&root, file, every),
        Command::Graph { file, output } => graph(file, output.clone()),
        Command::Capture { file } => capture(root, file),
    }
}

fn status(levels: impl Iterator<Item = Level>) -> ExitCode {
    match levels.max() {
        Some(Level::Fault) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Prints a value as JSON, or as text.
fn output(
    json: bool,
    value: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let mut out = anstream::stdout().lock();
    let result = if json {
        serde_json::to_string_pretty(value)
            .map_err(io::Error::from)
            .and_then(|json| writeln!(out, "{json}"))
    } else {
        text(&mut out)
    };
    result.and_then(|()| out.flush()).or_else(closed)
}

/// A reader that has seen enough, such as `head`, is no error.
fn closed(error: io::Error) -> Result<(), Error> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Error::Output(error)),
    }
}

/// Takes samples, and waits between them. `each` gets the one before, too.
fn samples(
    root: &Root,
    every: &Every,
    mut each: impl FnMut(Option<&Sample>, &Sample) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut last = None;
    let mut taken = 0;
    loop {
        let sample = Sample::of(&Snapshot::take(root));
        if !each(last.as_ref(), &sample)? {
            return Ok(());
        }
        last = Some(sample);
        taken += 1;
        if every.count.is_some_and(|count| taken > count) {
            return Ok(());
        }
        thread::sleep(every.interval);
    }
}

fn watch(root: &Root, every: &Every, json: bool) -> Result<ExitCode, Error> {
    samples(root, every, |last, sample| {
        let Some(rates) = last.and_then(|last| Rates::between(last, sample)) else {
            return Ok(true);
        };
        let mut out = anstream::stdout().lock();
        let result = if json {
            serde_json::to_string(&rates)
                .map_err(io::Error::from)
                .and_then(|json| writeln!(out, "{json}"))
        } else {
            refresh(&mut out).and_then(|()| show::rates::print(&mut out, &rates))
        };
        match result.and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) => closed(error).map(|()| false),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Clears a terminal. Elsewhere, what follows is added to what is there.
fn refresh(out: &mut dyn Write) -> io::Result<()> {
    if io::stdout().is_terminal() {
        write!(out, "\x1b[H\x1b[J")?;
    }
    Ok(())
}

fn record(root: &Root, file: &Path, every: &Every) -> Result<ExitCode, Error> {
    let mut recorder = Recorder::create(file)?;
    samples(root, every, |_, sample| {
        recorder.write(sample).map_err(Error::file(file))?;
        Ok(true)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn graph(file: &Path, output: Option<PathBuf>) -> Result<ExitCode, Error> {
    let rates = recording::read(file)?;
    let svg = show::graph::draw(&rates)?;
    let output = output.unwrap_or_else(|| file.with_extension("svg"));
    fs::write(&output, svg).map_err(Error::file(&output))?;
    Ok(ExitCode::SUCCESS)
}

fn capture(root: Root, file: &Path) -> Result<ExitCode, Error> {
    let root = root.copying();
    let all = Snapshot::take(&root);
    let mut copies = root.into_copies();
    // A capture leaves out what other parts of the kernel wrote.
    copies.retain_lines("/dev/kmsg", |line| line.contains(";rpcrdma: "));
    copies.insert("/time", Ok(all.time_ms.to_string()));
    let mut output = File::create_new(file).map_err(Error::file(file))?;
    write!(
        output,
        "Files that nfsrdma {} read.\n{copies}",
        env!("CARGO_PKG_VERSION")
    )
    .map_err(Error::file(file))?;
    let mut out = anstream::stdout().lock();
    show::findings::not_known(&mut out, &all.missing).or_else(closed)?;
    Ok(ExitCode::SUCCESS)
}
