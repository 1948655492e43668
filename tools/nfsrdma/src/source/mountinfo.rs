// SPDX-License-Identifier: GPL-2.0

//! `/proc/self/mountinfo`: which mount a directory belongs to.

use std::collections::BTreeMap;

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    /// The directory.
    pub target: String,
    /// The type of the file system.
    pub fstype: String,
    /// The options of the file system.
    pub options: BTreeMap<String, String>,
}

/// Parses the file. Lines that have too few fields are ignored.
pub fn parse(text: &str) -> Vec<MountPoint> {
    let each = text.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        Some(MountPoint {
            target: unescape(left.split(' ').nth(4)?),
            fstype: right.next()?.to_string(),
            options: options(right.nth(1).unwrap_or("")),
        })
    });
    each.collect()
}

/// Parses a list of options. Those without a value have an empty one.
pub fn options(list: &str) -> BTreeMap<String, String> {
    let each = list.trim().split(',').filter(|option| !option.is_empty());
    each.map(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        (name.to_string(), value.to_string())
    })
    .collect()
}

/// The mount that `path` lies on. No file is looked at, because a server that hangs would not
/// answer.
pub fn holding<'a>(mounts: &'a [MountPoint], path: &str) -> Option<&'a MountPoint> {
    let path = path.trim_end_matches('/');
    let holds = |mount: &&MountPoint| {
        let target = mount.target.trim_end_matches('/');
        path.strip_prefix(target)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Of mounts on one directory, the last hides the others.
    let len = |mount: &&MountPoint| mount.target.len();
    mounts.iter().filter(holds).max_by_key(len)
}

/// Replaces the octal numbers that the kernel writes for blanks, tabs, newlines and backslashes.
pub fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if first == b'\\' => {
                Some(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(octal.unwrap_or(first));
        rest = &after[if octal.is_some() { 3 } else { 0 }..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "22 1 0:20 / / rw - ext4 /dev/vda rw\n\
        30 22 0:40 / /mnt rw,relatime shared:1 - nfs4 192.0.2.1:/export rw,addr=192.0.2.1\n\
        31 30 0:41 / /mnt/a\\040b rw - nfs4 192.0.2.1:/other rw\n\
        broken line\n";

    #[test]
    fn a_directory_lies_on_the_mount_with_the_longest_path() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].options["addr"], "192.0.2.1");
        let at = |path| holding(&mounts, path).map(|mount| mount.target.as_str());
        assert_eq!(at("/mnt/a b/c"), Some("/mnt/a b"));
        assert_eq!(at("/mnt/a"), Some("/mnt"));
        assert_eq!(at("/mntx"), Some("/"));
        assert_eq!(at("/mnt/"), Some("/mnt"));
    }

    #[test]
    fn octal_numbers_are_replaced() {
        assert_eq!(unescape(r"a\040b\134c\9"), r"a b\c\9");
        assert_eq!(unescape(r"\04"), r"\04");
    }
}
