// SPDX-License-Identifier: GPL-2.0

//! Access to the files of this machine, of a directory that has the same files, or of a capture.

use std::{
    cell::RefCell,
    fmt, fs,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::capture::Capture;

/// The bytes of the longest file that is read.
const LONGEST: usize = 64 << 20;

/// Where the outputs of commands are, if they are not run.
const COMMANDS: &str = "/commands";

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It does not exist.
    Absent,
    /// Only root may read it.
    Denied,
    /// Another error, in words.
    Other(String),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("does not exist"),
            Self::Denied => f.write_str("only root may read it"),
            Self::Other(error) => f.write_str(error),
        }
    }
}

/// Where files are.
#[derive(Clone, Debug, Default)]
enum Place {
    #[default]
    Here,
    Below(PathBuf),
    In(Capture),
}

/// The file system that the sources read.
#[derive(Clone, Debug, Default)]
pub struct Root {
    place: Place,
    copies: Option<RefCell<Capture>>,
}

impl Root {
    /// Reads the files of this machine.
    pub fn live() -> Self {
        Self::default()
    }

    /// Reads the files of a capture.
    pub fn captured(capture: Capture) -> Self {
        Self {
            place: Place::In(capture),
            copies: None,
        }
    }

    /// Reads the files below a directory, or those of a file that `nfsrdma capture` has made.
    ///
    /// # Errors
    ///
    /// If there is neither.
    pub fn at(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            return Ok(Self {
                place: Place::Below(path.to_path_buf()),
                copies: None,
            });
        }
        fs::read_to_string(path).map(|text| Self::captured(Capture::parse(&text)))
    }

    /// Keeps a copy of each file that is read.
    pub fn copying(self) -> Self {
        Self {
            copies: Some(RefCell::default()),
            ..self
        }
    }

    /// The copies.
    pub fn into_copies(self) -> Capture {
        self.copies.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Whether the files are those of this machine.
    pub fn is_live(&self) -> bool {
        matches!(self.place, Place::Here)
    }

    /// Reads a file. What is not UTF-8 is replaced, and so are control characters, which a peer or
    /// a mount may have put there for the terminal.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or read.
    pub fn read(&self, path: &str) -> Result<String, Unreadable> {
        let result = match &self.place {
            Place::Here => read_all(Path::new(path)),
            Place::Below(prefix) => read_all(&below(prefix, path)),
            Place::In(capture) => capture.read(path),
        };
        let result = result.map(|text| printable(&text));
        if let Some(copies) = &self.copies {
            copies.borrow_mut().insert(path, result.clone());
        }
        result
    }

    /// Reads a file of one value, without white space around it.
    ///
    /// # Errors
    ///
    /// As for [`Root::read`].
    pub fn value(&self, path: &str) -> Result<String, Unreadable> {
        self.read(path).map(|text| text.trim().to_string())
    }

    /// The names in a directory, sorted: numbers in their order.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Unreadable> {
        let result = match &self.place {
            Place::Here => names(Path::new(path)),
            Place::Below(prefix) => names(&below(prefix, path)),
            Place::In(capture) => capture.list(path),
        };
        if let Some(copies) = &self.copies {
            copies.borrow_mut().insert_directory(path, &result);
        }
        let mut names = result?;
        names.retain(|name| !name.contains(char::is_control));
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        Ok(names)
    }

    /// Whether a file can be read, or a directory listed.
    pub fn exists(&self, path: &str) -> bool {
        self.list(path).is_ok() || self.read(path).is_ok()
    }

    /// The output of a command, or `None` if it fails.
    pub fn command(&self, program: &str, args: &[&str]) -> Option<String> {
        let name = format!("{COMMANDS}/{program} {}", args.join(" "));
        if !self.is_live() {
            return self.read(&name).ok();
        }
        let output = Command::new(program).args(args).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| {
            if let Some(copies) = &self.copies {
                copies.borrow_mut().insert(&name, Ok(text.clone()));
            }
            text
        })
    }
}

/// Reads to the end, or up to [`LONGEST`].
fn read_all(path: &Path) -> Result<String, Unreadable> {
    // A read of the kernel log would wait for the next message.
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let mut bytes = Vec::new();
    // A read of the kernel log fails unless the buffer has room for the longest message.
    let mut buffer = vec![0; 64 << 10];
    while bytes.len() < LONGEST {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => bytes.extend_from_slice(&buffer[..len]),
            Err(error) => match error.kind() {
                // The end of the kernel log.
                io::ErrorKind::WouldBlock => break,
                // A message of the log was overwritten; the next read returns the one after it.
                io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted => {}
                _ => return Err(error.into()),
            },
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn printable(text: &str) -> String {
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.replace(is_harmful, "?")
}

fn names(path: &Path) -> Result<Vec<String>, Unreadable> {
    let entries = fs::read_dir(path)?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect())
}

fn below(prefix: &Path, path: &str) -> PathBuf {
    prefix.join(path.trim_start_matches('/'))
}
