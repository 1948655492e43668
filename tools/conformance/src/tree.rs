// SPDX-License-Identifier: GPL-2.0

//! What the files of the tree define: items of Rust, cases of test programs, functions of C.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    str::FromStr,
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The definitions of all files that tables may name. Paths are those below the root.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// By path.
    files: BTreeMap<String, File>,
    /// `#[test]` functions under `tools/host`.
    pub(crate) host_tests: BTreeSet<String>,
    /// Everything that is defined anywhere.
    names: BTreeSet<String>,
    /// Files that could not be understood.
    pub(crate) broken: Vec<String>,
}

/// One file.
#[derive(Debug)]
pub(crate) enum File {
    /// Items, all identifiers, and the lines of its header that name functions of C.
    Rust {
        items: BTreeSet<String>,
        words: BTreeSet<String>,
        origins: Vec<String>,
    },
    /// Functions, and the cases that a test program runs if it is not told which.
    Shell {
        functions: BTreeSet<String>,
        cases: BTreeSet<String>,
    },
    /// Functions, and cases in tables.
    C {
        functions: BTreeSet<String>,
        cases: Vec<Case>,
    },
    /// Text.
    Other(String),
}

/// A row of a table of the probe.
#[derive(Debug)]
pub(crate) struct Case {
    /// What the case is about: names of requirements.
    pub(crate) about: Vec<String>,
    /// All identifiers of the row.
    words: BTreeSet<String>,
}

/// Directories with files that tables may name.
const DIRS: [&str; 4] = ["rust", "include", "selftests", "tools"];

impl Tree {
    /// Reads the tree at `root`.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
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
        let file = if path.ends_with(".rs") {
            let mut found = Found::default();
            match TokenStream::from_str(&text) {
                Ok(tokens) => found.walk(tokens),
                Err(err) => self.broken.push(format!("{path}: {err}")),
            }
            if path.starts_with("tools/host/") {
                self.host_tests.extend(found.tests);
            } else {
                self.names.extend(found.items.iter().cloned());
            }
            let origins = text.lines().filter_map(|line| line.strip_prefix("//! C:"));
            File::Rust {
                origins: origins.map(|line| line.trim().into()).collect(),
                items: found.items,
                words: found.words,
            }
        } else if path.ends_with(".sh") {
            let functions = shell_functions(&text);
            let cases = shell_cases(&text);
            self.names.extend(functions.iter().cloned());
            File::Shell { functions, cases }
        } else if path.ends_with(".c") {
            let functions = c_functions(&text);
            self.names.extend(functions.iter().cloned());
            File::C {
                functions,
                cases: c_cases(&text),
            }
        } else {
            File::Other(text)
        };
        self.files.insert(path, file);
    }

    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Whether something of that name is defined anywhere, or is a test.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.contains(name) || self.host_tests.contains(name)
    }

    /// What is wrong with a file, and an item in it.
    pub(crate) fn lacks(&self, path: &str, item: Option<&str>) -> Option<String> {
        let Some(file) = self.files.get(path) else {
            let above = path.trim_end_matches('/').to_owned() + "/";
            return match self.files.range(above.clone()..).next() {
                Some((first, _)) if first.starts_with(&above) && item.is_none() => None,
                _ => Some(format!("there is no {path}")),
            };
        };
        let item = item?;
        let (found, kind) = match file {
            File::Rust { items, words, .. } => {
                let mut parts = item.rsplit("::");
                let last = parts.next().is_some_and(|name| items.contains(name));
                (last && parts.all(|name| words.contains(name)), "no item")
            }
            // A program of tests: what is named is run.
            File::Shell { functions, cases } if path.starts_with("selftests/") => {
                (functions.contains(item) && cases.contains(item), "no case")
            }
            File::Shell { functions, .. } => (functions.contains(item), "no function"),
            // A case, or a function that cases have in common.
            File::C { functions, cases } => {
                let is_case = cases.iter().any(|case| case.words.contains(item));
                (
                    is_case || functions.contains(item) && !item.starts_with("t_"),
                    "no case",
                )
            }
            File::Other(text) => (words(text).any(|word| word == item), "no word"),
        };
        (!found).then(|| format!("there is {kind} {item} in {path}"))
    }
}

/// What a file of Rust defines.
#[derive(Default)]
struct Found {
    items: BTreeSet<String>,
    words: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Found {
    /// Goes through the tokens, and so through what is in macros, too. An item is what follows
    /// one of the words that define something.
    fn walk(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut defines = String::new();
        let mut is_test = false;

        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    self.walk(group.stream());
                    defines.clear();
                }
                TokenTree::Punct(punct) => match (punct.as_char(), tokens.peek()) {
                    // A lifetime, which may be 'static; a pointer.
                    ('\'', Some(TokenTree::Ident(_))) => _ = tokens.next(),
                    ('*', Some(TokenTree::Ident(word))) if word == "const" => _ = tokens.next(),
                    ('#', Some(TokenTree::Group(group))) => {
                        is_test |= group.delimiter() == Delimiter::Bracket
                            && group.stream().to_string() == "test";
                    }
                    ('!', _) if defines == "macro_rules" => {}
                    _ => defines.clear(),
                },
                TokenTree::Ident(ident) => {
                    let word = ident.to_string();
                    match word.as_str() {
                        "fn" | "struct" | "enum" | "union" | "trait" | "const" | "static"
                        | "type" | "mod" | "macro_rules" => {
                            defines = word;
                            continue;
                        }
                        "mut" | "unsafe" | "extern" => continue,
                        _ => {}
                    }
                    if !defines.is_empty() {
                        if defines == "fn" && is_test {
                            self.tests.insert(word.clone());
                        }
                        is_test = false;
                        self.items.insert(word.clone());
                        defines.clear();
                    }
                    self.words.insert(word);
                }
                TokenTree::Literal(_) => defines.clear(),
            }
        }
    }
}

/// Words of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn shell_functions(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.split_once("()"))
        .map(|(name, _)| name)
        .filter(|name| words(name).eq([*name]))
        .map(String::from)
        .collect()
}

/// What a program of tests runs: all words behind its last function.
fn shell_cases(text: &str) -> BTreeSet<String> {
    let main = text.rsplit("\n}\n").next().unwrap_or_default();
    main.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(words)
        .map(String::from)
        .collect()
}

/// Names before the parenthesis of definitions, which begin in the first column.
pub(crate) fn c_functions(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .filter(|line| !line.trim_end().ends_with(';'))
        .filter_map(|line| words(line.split_once('(')?.0).last())
        .map(String::from)
        .collect()
}

/// Rows `{ "R8166-3.4.1-1 ...", "...", function },` of tables.
fn c_cases(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut rest = text;

    while let Some(start) = rest.find("\n\t{ \"") {
        let row = &rest[start + 4..];
        let row = row.find("},\n").map_or(row, |end| &row[..end]);
        let mut texts = row.split('"').skip(1).step_by(2);
        let about = texts.next().unwrap_or_default();
        cases.push(Case {
            about: about
                .split(' ')
                .filter(|id| *id != "-")
                .map(String::from)
                .collect(),
            words: row
                .split('"')
                .step_by(2)
                .flat_map(words)
                .map(String::from)
                .collect(),
        });
        rest = &rest[start + 5..];
    }
    cases
}
