// SPDX-License-Identifier: GPL-2.0

//! The text of a file: lines of a name and a value.

use core::fmt::{
    self,
    Display,
    Write, //
};

use kernel::prelude::*;

/// What a file shows.
pub(crate) trait Show: Send + Sync + 'static {
    /// Writes the text. Runs in the task that reads, may sleep, and may run for several tasks at a
    /// time.
    ///
    /// # Errors
    ///
    /// The text has no more room: the caller tries again with more.
    fn show(&self, lines: &mut Lines) -> fmt::Result;
}

/// A text: lines of a name and a value.
pub(crate) struct Lines(KVec<u8>);

impl Lines {
    /// A text of up to `size` bytes.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn with_capacity(size: usize) -> Result<Self> {
        Ok(Self(KVec::with_capacity(size, GFP_KERNEL)?))
    }

    /// The bytes.
    pub(super) fn into_bytes(self) -> KVec<u8> {
        self.0
    }

    /// Adds the line `name: value`.
    pub(crate) fn value(&mut self, name: &str, value: impl Display) -> fmt::Result {
        writeln!(self, "{name}: {value}")
    }

    /// Adds the line `name: value`, or `name: -` if there is no value.
    pub(crate) fn maybe(&mut self, name: &str, value: Option<impl Display>) -> fmt::Result {
        match value {
            Some(value) => self.value(name, value),
            None => self.value(name, "-"),
        }
    }

    /// Adds the line `name: yes` or `name: no`, or `name: -` if neither is known.
    pub(crate) fn flag(&mut self, name: &str, value: Option<bool>) -> fmt::Result {
        self.maybe(name, value.map(|yes| if yes { "yes" } else { "no" }))
    }
}

impl Write for Lines {
    /// Allocates nothing, so that the caller may hold locks.
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if s.len() > self.0.capacity() - self.0.len() {
            return Err(fmt::Error);
        }
        let added = self.0.extend_from_slice(s.as_bytes(), GFP_NOWAIT);
        added.map_err(|_| fmt::Error)
    }
}
