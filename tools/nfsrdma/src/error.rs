// SPDX-License-Identifier: GPL-2.0

//! Errors of the command: each names the cause and the next step.

use std::{fmt, io, path::PathBuf};

/// Why the command failed.
#[derive(Debug)]
pub enum Error {
    /// No mount over RDMA holds the path.
    NoMount {
        /// The path.
        path: String,
        /// The mounts that there are.
        mounts: Vec<String>,
    },
    /// No connection is with the peer.
    NoPeer {
        /// The peer.
        peer: String,
        /// The peers that there are.
        peers: Vec<String>,
    },
    /// A file cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A recorded run cannot be used.
    Recording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A picture cannot be drawn.
    Drawing(String),
    /// The output cannot be written.
    Output(io::Error),
}

impl Error {
    /// Makes an error of a file from that of the system.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { path, error }
    }

    /// What to do.
    pub fn next(&self) -> String {
        match self {
            Self::NoMount { mounts, .. } if mounts.is_empty() => {
                "mount with proto=rdma; \"nfsrdma doctor\" says what could prevent that".to_string()
            }
            Self::NoMount { mounts, .. } => format!("name one of: {}", mounts.join(" ")),
            Self::NoPeer { peers, .. } if peers.is_empty() => {
                "there is no connection at all; run \"nfsrdma doctor\"".to_string()
            }
            Self::NoPeer { peers, .. } => format!("name one of: {}", peers.join(" ")),
            Self::File { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "run this as root, or name another file".to_string()
            }
            Self::File { .. } => "name another file".to_string(),
            Self::Recording { .. } => "make one with: nfsrdma record FILE".to_string(),
            Self::Drawing(_) => "please report this, with the recording".to_string(),
            Self::Output(_) => "write to a terminal or a file".to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMount { path, .. } => write!(f, "{path} is not on a mount over RDMA"),
            Self::NoPeer { peer, .. } => write!(f, "there is no connection with {peer}"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Recording { path, what } => write!(f, "{}: {what}", path.display()),
            Self::Drawing(what) => write!(f, "the picture cannot be drawn: {what}"),
            Self::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

impl std::error::Error for Error {}
