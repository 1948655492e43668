// SPDX-License-Identifier: GPL-2.0

//! The tables under `Documentation/`, as types.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::{de::DeserializeOwned, Deserialize};

/// All tables of a tree.
#[derive(Debug)]
pub(crate) struct Tables {
    /// `Documentation/conformance/*.toml`.
    pub(crate) requirements: Vec<(PathBuf, Requirements)>,
    /// `Documentation/bug-classes/*.toml`.
    pub(crate) bugs: Vec<(PathBuf, BugClass)>,
    /// `Documentation/from-xprtrdma.csv`.
    pub(crate) ports: Vec<Port>,
}

/// The third table, relative to the root.
pub(crate) const PORTS: &str = "Documentation/from-xprtrdma.csv";

/// The C module, relative to the root of a kernel's source.
pub(crate) const C_MODULE: &str = "net/sunrpc/xprtrdma";

/// Headers of the C module that other modules include.
pub(crate) const C_HEADERS: &str = "include/linux/sunrpc";

/// One section of a protocol document.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirements {
    /// The title of the page. All files of one document have the same.
    pub(crate) document: String,
    /// The title of the section, in a document of several files.
    pub(crate) title: Option<String>,
    /// A paragraph above the table.
    pub(crate) about: Option<String>,
    /// In the order of the document.
    pub(crate) requirement: Vec<Requirement>,
}

/// What a protocol document asks of an implementation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    /// Document, section, and number in that section: `R8166-3.3.1-4`.
    pub(crate) id: String,
    /// The keyword of the document.
    pub(crate) force: Force,
    /// The end that has to meet it.
    pub(crate) end: End,
    /// The requirement in short.
    pub(crate) asks: String,
    /// Whether this module meets it.
    pub(crate) state: Compliance,
    /// Code that meets it.
    #[serde(default, rename = "where")]
    pub(crate) code: Vec<Reference>,
    /// Tests that fail if it is not met.
    #[serde(default)]
    pub(crate) shown: Vec<Reference>,
    /// Limits of the test, or the reason for the state.
    pub(crate) note: Option<String>,
}

/// Bugs of one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BugClass {
    /// A letter.
    pub(crate) class: char,
    /// What the bugs have in common.
    pub(crate) title: String,
    /// In the order of their numbers.
    pub(crate) entry: Vec<Bug>,
}

/// One way in which such code has failed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bug {
    /// The class and a number: `C4`.
    pub(crate) id: String,
    /// What goes wrong.
    pub(crate) failure: String,
    /// What would detect it here.
    pub(crate) state: Guard,
    /// Code that prevents it.
    #[serde(default, rename = "where")]
    pub(crate) code: Vec<Reference>,
    /// Tests that would fail.
    #[serde(default)]
    pub(crate) shown: Vec<Reference>,
    /// Limits of the test, or the reason for the state.
    pub(crate) note: Option<String>,
}

/// A function or structure of the C module, and its counterpart.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Port {
    /// A file of `net/sunrpc/xprtrdma/`.
    pub(crate) c_file: String,
    /// A function, or `struct` and a name.
    pub(crate) c_name: String,
    /// The file here. Empty: this module has no counterpart.
    pub(crate) file: String,
    /// An item that the file defines: `name`, or `Type::name`. Empty: the whole file.
    pub(crate) item: String,
    /// The difference, or the reason why there is no counterpart.
    pub(crate) note: String,
}

/// Defines an enum of the words that a field may have.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
        pub(crate) enum $name {
            $($(#[$each])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All words, in the order of summaries.
            #[allow(dead_code, reason = "not every field has a summary")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $word),+ })
            }
        }
    };
}

words! {
    /// The force of a requirement.
    Force {
        /// RFC 2119.
        Must = "MUST",
        /// RFC 2119.
        Should = "SHOULD",
        /// RFC 2119.
        May = "MAY",
        /// A duty in lower case.
        LowerMust = "must",
        /// A duty in lower case.
        LowerShould = "should",
        /// A definition or a fact.
        Definition = "def",
        /// A proposal of a draft.
        Design = "design",
    }
}

words! {
    /// The end that a requirement binds.
    End {
        /// Both ends.
        Both = "both",
        /// The requester.
        Requester = "req",
        /// The responder.
        Responder = "resp",
        /// The end that connects.
        Client = "client",
        /// The end that listens.
        Server = "server",
        /// Client and server, each in its own way.
        ClientAndServer = "client/server",
        /// NFS.
        UpperLayer = "ulp",
    }
}

words! {
    /// Whether a requirement is met.
    Compliance {
        /// A test would fail if it were not.
        Met = "met",
        /// Tests show a part of it.
        Partly = "partly",
        /// The code meets it, but no test shows that.
        Reading = "reading",
        /// The code does not meet it.
        NotMet = "not met",
        /// It requires nothing of this module.
        NotApplicable = "n/a",
    }
}

words! {
    /// What detects or prevents a bug.
    Guard {
        /// A test.
        Test = "test",
        /// A test that `make test` does not run.
        Elsewhere = "elsewhere",
        /// A type, or one place that all paths pass.
        Type = "type",
        /// Nothing.
        None = "none",
        /// This module cannot have it.
        NotApplicable = "n/a",
    }
}

/// A test on the build host by its name, a file, or an item of a file as `file:item`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(from = "String")]
pub(crate) enum Reference {
    /// A `#[test]` of the suite `host`.
    HostTest(String),
    /// A file below the root.
    File(String),
    /// An item that a file defines, or a case of a test program.
    Item(String, String),
}

impl From<String> for Reference {
    fn from(text: String) -> Self {
        match text.split_once(':') {
            _ if !text.contains('/') => Self::HostTest(text),
            Some((file, item)) => Self::Item(file.into(), item.into()),
            None => Self::File(text),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostTest(name) | Self::File(name) => f.write_str(name),
            Self::Item(file, item) => write!(f, "{file}:{item}"),
        }
    }
}

impl Reference {
    /// The file, if the reference names one.
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::HostTest(_) => None,
            Self::File(file) | Self::Item(file, _) => Some(file),
        }
    }
}

impl Tables {
    /// Reads all tables below `root`.
    ///
    /// # Errors
    ///
    /// A message about the first table that cannot be read.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        Ok(Self {
            requirements: read_all(root, "Documentation/conformance")?,
            bugs: read_all(root, "Documentation/bug-classes")?,
            ports: read_ports(root)?,
        })
    }

    /// All requirements, each with its file.
    pub(crate) fn each_requirement(&self) -> impl Iterator<Item = (&Path, &Requirement)> {
        self.requirements.iter().flat_map(|(path, table)| {
            table
                .requirement
                .iter()
                .map(|record| (path.as_path(), record))
        })
    }

    /// All bugs, each with its file.
    pub(crate) fn each_bug(&self) -> impl Iterator<Item = (&Path, &Bug)> {
        self.bugs
            .iter()
            .flat_map(|(path, table)| table.entry.iter().map(|record| (path.as_path(), record)))
    }
}

/// The TOML files of a directory, in the order of their names. Paths are those below `root`.
fn read_all<T: DeserializeOwned>(root: &Path, dir: &str) -> Result<Vec<(PathBuf, T)>, String> {
    let entries = match fs::read_dir(root.join(dir)) {
        Ok(entries) => entries,
        Err(_) => return Ok(Vec::new()),
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| Some(Path::new(dir).join(entry.ok()?.file_name())))
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|path| {
            let message = |err: &dyn fmt::Display| format!("{}: {err}", path.display());
            let text = fs::read_to_string(root.join(&path)).map_err(|err| message(&err))?;
            let table = toml::from_str(&text).map_err(|err| message(&err))?;
            Ok((path, table))
        })
        .collect()
}

fn read_ports(root: &Path) -> Result<Vec<Port>, String> {
    let path = root.join(PORTS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_path(path)
        .and_then(|mut reader| reader.deserialize().collect())
        .map_err(|err| format!("{PORTS}: {err}"))
}
