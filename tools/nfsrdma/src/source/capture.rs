// SPDX-License-Identifier: GPL-2.0

//! A text with copies of files, which a person can read, and send with a report.
//!
//! ```text
//! == /proc/uptime
//!         28.01 15.27
//! == /sys/kernel/debug/rpcrdma/
//! == /dev/kmsg denied
//! ```

use std::{collections::BTreeMap, fmt};

use super::root::Unreadable;

/// Files and directories by their path. The path of a directory ends with a slash.
#[derive(Clone, Debug, Default)]
pub struct Capture(BTreeMap<String, Option<String>>);

/// What starts the line of a path.
const HEAD: &str = "== ";
/// What follows the path of what only root may read.
const DENIED: &str = " denied";

impl Capture {
    /// Parses the text of a capture. What is before the first path is ignored.
    pub fn parse(text: &str) -> Self {
        let mut capture = Self::default();
        let mut content: Option<&mut String> = None;
        for line in text.lines() {
            if let Some(path) = line.strip_prefix(HEAD) {
                let (path, file) = match path.strip_suffix(DENIED) {
                    Some(path) => (path, None),
                    None => (path, Some(String::new())),
                };
                let entry = capture.0.entry(path.to_string()).or_default();
                *entry = file;
                content = entry.as_mut();
            } else if let Some(content) = &mut content {
                content.push_str(line.strip_prefix('\t').unwrap_or(line));
                content.push('\n');
            }
        }
        capture
    }

    /// Sets the content of a file, or that it cannot be read.
    pub fn insert(&mut self, path: &str, result: Result<String, Unreadable>) {
        match result {
            Ok(text) => self.0.insert(path.to_string(), Some(text)),
            Err(Unreadable::Denied) => self.0.insert(path.to_string(), None),
            Err(_) => None,
        };
    }

    /// Sets that a directory exists, or that it cannot be read.
    pub(super) fn insert_directory(&mut self, path: &str, names: &Result<Vec<String>, Unreadable>) {
        let content = names.as_ref().map(|_| String::new());
        self.insert(&directory(path), content.map_err(Clone::clone));
    }

    /// Keeps only these lines of a file.
    pub fn retain_lines(&mut self, path: &str, keep: impl Fn(&str) -> bool) {
        if let Some(Some(text)) = self.0.get_mut(path) {
            *text = text
                .split_inclusive('\n')
                .filter(|line| keep(line))
                .collect();
        }
    }

    /// Removes a file, or a directory with everything in it.
    pub fn remove(&mut self, path: &str) {
        let directory = directory(path);
        self.0
            .retain(|each, _| each != path && !each.starts_with(&directory));
    }

    pub(super) fn read(&self, path: &str) -> Result<String, Unreadable> {
        match self.0.get(path) {
            Some(Some(text)) => Ok(text.clone()),
            Some(None) => Err(Unreadable::Denied),
            None => Err(Unreadable::Absent),
        }
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, Unreadable> {
        let directory = directory(path);
        if self.0.get(&directory) == Some(&None) {
            return Err(Unreadable::Denied);
        }
        let inside = self
            .0
            .keys()
            .filter_map(|each| each.strip_prefix(&directory));
        let mut names: Vec<_> = inside
            .filter_map(|rest| rest.split('/').next())
            .filter(|name| !name.is_empty())
            .map(str::to_string)
            .collect();
        names.dedup();
        if names.is_empty() && !self.0.contains_key(&directory) {
            return Err(Unreadable::Absent);
        }
        Ok(names)
    }
}

fn directory(path: &str) -> String {
    format!("{}/", path.trim_end_matches('/'))
}

impl fmt::Display for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, content) in &self.0 {
            match content {
                Some(text) => {
                    writeln!(f, "{HEAD}{path}")?;
                    text.lines().try_for_each(|line| writeln!(f, "\t{line}"))?;
                }
                None => writeln!(f, "{HEAD}{path}{DENIED}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_the_same_after_it_was_written() {
        let text = "a comment\n== /a/b/c\n\tone\n\t\n\t== two\n== /a/d/\n== /e denied\n";
        let capture = Capture::parse(text);
        assert_eq!(format!("a comment\n{capture}"), text);
        assert_eq!(capture.read("/a/b/c").unwrap(), "one\n\n== two\n");
        assert_eq!(capture.read("/e"), Err(Unreadable::Denied));
        assert_eq!(capture.list("/a").unwrap(), ["b", "d"]);
        assert_eq!(capture.list("/a/d").unwrap(), Vec::<String>::new());
        assert_eq!(capture.list("/x"), Err(Unreadable::Absent));
    }

    #[test]
    fn a_directory_is_removed_with_what_is_in_it() {
        let mut capture = Capture::parse("== /a/b/c\n== /a/bc\n");
        capture.remove("/a/b");
        assert_eq!(capture.list("/a").unwrap(), ["bc"]);
    }
}
