// SPDX-License-Identifier: GPL-2.0

//! The names that files of the tree define.

pub(crate) mod c;
mod rust;
mod shell;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

/// The definitions in all files that tables may name. Paths are relative to the root.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
    /// `#[test]` functions under the directories of [`HOST_TESTS`].
    pub(crate) host_tests: BTreeSet<String>,
    /// All other names.
    names: BTreeSet<String>,
    /// An error for each Rust file that is not a sequence of tokens.
    pub(crate) unparsed: Vec<String>,
}

/// One file.
#[derive(Debug)]
pub(crate) enum File {
    /// A Rust file.
    Rust {
        /// Names of items.
        items: BTreeSet<String>,
        /// All identifiers.
        words: BTreeSet<String>,
        /// The lines `C: ...` of the header.
        c_lines: Vec<String>,
    },
    /// A shell script.
    Shell {
        /// Names of functions.
        functions: BTreeSet<String>,
        /// Cases that a selftest runs.
        cases: BTreeSet<String>,
    },
    /// A C file.
    C {
        /// Names of functions.
        functions: BTreeSet<String>,
        /// Cases of the probe.
        cases: Vec<c::Case>,
        /// Groups of cases.
        groups: BTreeSet<String>,
    },
    /// Any other text.
    Text(String),
}

/// Directories with files that tables may name.
const DIRS: [&str; 4] = ["rust", "include", "selftests", "tools"];

/// Directories whose tests are those of the suite `host`.
const HOST_TESTS: [&str; 2] = ["tools/host/", "tools/nfsrdma/"];

impl Tree {
    /// Reads the tree at `root`.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        for dir in DIRS {
            if root.join(dir).is_dir() {
                tree.read_dir(root, dir)?;
            }
        }
        Ok(tree)
    }

    fn read_dir(&mut self, root: &Path, dir: &str) -> io::Result<()> {
        for entry in fs::read_dir(root.join(dir))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{dir}/{name}");
            if entry.file_type()?.is_dir() {
                if name != "target" {
                    self.read_dir(root, &path)?;
                }
            } else if let Ok(text) = fs::read_to_string(root.join(&path)) {
                self.add(path, text);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String, text: String) {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        let file = match extension {
            "rs" => self.add_rust(&path, &text),
            "sh" => File::Shell {
                functions: shell::functions(&text),
                cases: shell::cases(&text),
            },
            "c" => File::C {
                functions: c::functions(&text),
                cases: c::cases(&text),
                groups: c::groups(&text),
            },
            _ => File::Text(text),
        };
        if let File::Shell { functions, .. } | File::C { functions, .. } = &file {
            self.names.extend(functions.iter().cloned());
        }
        self.files.insert(path, file);
    }

    fn add_rust(&mut self, path: &str, text: &str) -> File {
        let definitions = rust::definitions(text).unwrap_or_else(|err| {
            self.unparsed.push(format!("{path}: {err}"));
            rust::Definitions::default()
        });
        if HOST_TESTS.iter().any(|dir| path.starts_with(dir)) {
            self.host_tests.extend(definitions.tests);
        } else {
            self.names.extend(definitions.items.iter().cloned());
        }
        let c_lines = text.lines().filter_map(|line| line.strip_prefix("//! C: "));
        File::Rust {
            items: definitions.items,
            words: definitions.words,
            c_lines: c_lines.map(String::from).collect(),
        }
    }

    /// All files with their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// One file.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// Whether any file defines `name`, or a host test has that name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.contains(name) || self.host_tests.contains(name)
    }

    /// Looks up a file or directory, and an item in it.
    ///
    /// # Errors
    ///
    /// A message if there is no such file or item.
    pub(crate) fn find(&self, path: &str, item: Option<&str>) -> Result<(), String> {
        let Some(file) = self.files.get(path) else {
            let dir = format!("{}/", path.trim_end_matches('/'));
            let is_dir = self.files.keys().any(|path| path.starts_with(&dir));
            return match item {
                None if is_dir => Ok(()),
                _ => Err(format!("there is no {path}")),
            };
        };
        let Some(item) = item else {
            return Ok(());
        };
        let (found, kind) = match file {
            File::Rust { items, words, .. } => (has_item(items, words, item), "item"),
            File::Shell { functions, cases } if path.starts_with("selftests/") => {
                (functions.contains(item) && cases.contains(item), "case")
            }
            File::Shell { functions, .. } => (functions.contains(item), "function"),
            // Functions `t_...` are of no use unless a table names them.
            File::C {
                functions, cases, ..
            } => {
                let in_table = cases.iter().any(|case| case.words.contains(item));
                let is_helper = functions.contains(item) && !item.starts_with("t_");
                (in_table || is_helper, "case")
            }
            File::Text(text) => (words(text).any(|word| word == item), "word"),
        };
        if found {
            Ok(())
        } else {
            Err(format!("there is no {kind} {item} in {path}"))
        }
    }
}

/// Whether a Rust file defines `item`. In `Type::name`, another file may define the type.
fn has_item(items: &BTreeSet<String>, words: &BTreeSet<String>, item: &str) -> bool {
    let (types, name) = item.rsplit_once("::").unwrap_or(("", item));
    items.contains(name) && self::words(types).all(|name| words.contains(name))
}

/// Words of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}
