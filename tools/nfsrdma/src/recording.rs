// SPDX-License-Identifier: GPL-2.0

//! Recorded runs: a line of JSON for each sample.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use crate::{
    error::Error,
    model::{rate::Rates, sample::Sample},
};

/// A file to which samples are written.
#[derive(Debug)]
pub struct Recorder {
    file: File,
}

impl Recorder {
    /// Creates the file.
    ///
    /// # Errors
    ///
    /// If it exists already, or cannot be created.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create_new(path).map_err(Error::file(path))?;
        Ok(Self { file })
    }

    /// Writes a sample. What is written stays readable if the command is interrupted.
    ///
    /// # Errors
    ///
    /// As of the file.
    pub fn write(&mut self, sample: &Sample) -> io::Result<()> {
        let mut line = serde_json::to_vec(sample)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Reads a run, and the rates between its samples.
///
/// # Errors
///
/// If the file cannot be read, is no recording, or has fewer than two samples.
pub fn read(path: &Path) -> Result<Vec<Rates>, Error> {
    let text = fs::read_to_string(path).map_err(Error::file(path))?;
    parse(&text).map_err(|what| Error::Recording {
        path: path.to_path_buf(),
        what,
    })
}

fn parse(text: &str) -> Result<Vec<Rates>, String> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        match serde_json::from_str(line) {
            Ok(sample) => samples.push(sample),
            // The command was interrupted.
            Err(_) if lines.peek().is_none() && !samples.is_empty() => break,
            Err(error) => return Err(format!("line {} is no sample: {error}", number + 1)),
        }
    }
    let rates: Vec<_> = samples
        .windows(2)
        .filter_map(|pair| Rates::between(&pair[0], &pair[1]))
        .collect();
    if rates.is_empty() {
        return Err(format!(
            "it has {} samples, and a picture needs two",
            samples.len()
        ));
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_interrupted_can_be_read() {
        let lines = "{\"time_ms\":1000}\n{\"time_ms\":2000}\n{\"time_ms\":30";
        assert_eq!(parse(lines).unwrap().len(), 1);
    }

    #[test]
    fn other_files_are_refused() {
        assert!(parse("").unwrap_err().contains("0 samples"));
        assert!(parse("{\"time_ms\":1}").unwrap_err().contains("1 samples"));
        assert!(parse("x\ny\n").unwrap_err().contains("line 1"));
    }
}
