// SPDX-License-Identifier: GPL-2.0

//! What a rule finds: a sentence with the cause, and the next step.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Good,
    /// A fact, or a cost that may be intended.
    Note,
    /// Something makes it slower than it could be.
    Limit,
    /// Something is broken, or was.
    Fault,
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// How much it matters.
    pub level: Level,
    /// The cause.
    pub what: String,
    /// What to do.
    pub next: Option<String>,
}

impl Finding {
    /// Something is as it should be.
    pub fn good(what: impl Into<String>) -> Self {
        Self::new(Level::Good, what, None)
    }

    /// A fact.
    pub fn note(what: impl Into<String>) -> Self {
        Self::new(Level::Note, what, None)
    }

    /// A cost, or a trap.
    pub fn limit(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Level::Limit, what, Some(next.into()))
    }

    /// Something is broken.
    pub fn fault(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Level::Fault, what, Some(next.into()))
    }

    fn new(level: Level, what: impl Into<String>, next: Option<String>) -> Self {
        Self {
            rule: "",
            level,
            what: what.into(),
            next,
        }
    }
}

/// A rule: it looks at facts of type `C`.
pub struct Rule<C: ?Sized> {
    /// Its name.
    pub name: &'static str,
    /// Looks at the facts.
    pub check: fn(&C) -> Vec<Finding>,
}

/// Applies all rules, in their order.
pub fn apply<C: ?Sized>(rules: &[Rule<C>], facts: &C) -> Vec<Finding> {
    let each = rules.iter().flat_map(|rule| {
        let found = (rule.check)(facts).into_iter();
        found.map(|finding| Finding {
            rule: rule.name,
            ..finding
        })
    });
    each.collect()
}
