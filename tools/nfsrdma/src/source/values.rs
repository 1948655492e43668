// SPDX-License-Identifier: GPL-2.0

//! Lists of names and values, as in `name: value` and `name=value`.

use serde::{Serialize, Serializer};

/// Names and values in the order of the file. Unknown names are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(Vec<(String, String)>);

impl Values {
    /// Parses lines of a name, `separator` and a value. Other lines are ignored.
    pub fn parse(text: &str, separator: char) -> Self {
        let pairs = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(separator)?;
            let name = name.trim();
            (!name.is_empty()).then(|| (name.to_string(), value.trim().to_string()))
        });
        Self(pairs.collect())
    }

    /// The value of a name, unless it is missing, empty or `-`, which means not applicable.
    pub fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(each, _)| each == name)?;
        (!value.is_empty() && value != "-").then_some(value)
    }

    /// The value of a name as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The value of a name as yes or no: `1`, `yes`, `on`, `true`, or their opposites.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.text(name)? {
            "1" | "yes" | "on" | "true" | "y" | "Y" => Some(true),
            "0" | "no" | "off" | "false" | "n" | "N" => Some(false),
            _ => None,
        }
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_unknown_names_and_leave_out_what_does_not_apply() {
        let values = Values::parse("a: 1\nnew: x: y\nb: -\nno separator\nc:\n: 5\n", ':');
        assert_eq!(values.number("a"), Some(1));
        assert_eq!(values.text("new"), Some("x: y"));
        assert_eq!(values.text("b"), None);
        assert_eq!(values.text("c"), None);
        assert_eq!(values.number("new"), None);
        assert_eq!(values.iter().count(), 4);
    }
}
