// SPDX-License-Identifier: GPL-2.0

//! The connections of the server that have ended last.

use core::fmt::{
    self,
    Display,
    Write, //
};

use kernel::{
    prelude::*,
    sync::global_lock, //
};

use crate::lib::clock::{
    jiffies,
    ms_since, //
};

use super::lines::{
    Lines,
    Show, //
};

global_lock! {
    // SAFETY: `init` initializes it, before there is a connection.
    unsafe(uninit) static ENDED: Mutex<Ended> = Ended::new();
}

/// Initializes the list, before there is a connection.
///
/// # Safety
///
/// Called once.
pub(super) unsafe fn init() {
    // SAFETY: By this function's contract.
    unsafe { ENDED.init() };
}

/// How many ended connections are remembered.
const MAX_ENDED: usize = 32;

/// A text of limited length. Further bytes are lost.
#[derive(Clone, Copy)]
struct Text {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Text {
    const MAX: usize = 96;

    const EMPTY: Self = Self {
        bytes: [0; Self::MAX],
        len: 0,
    };

    fn new(value: impl Display) -> Self {
        let mut text = Self::EMPTY;
        let _ = write!(text, "{value}");
        text
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or(&[]);
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let room = room.get_mut(..s.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

/// A connection that has ended.
#[derive(Clone, Copy)]
struct End {
    /// In jiffies.
    when: u64,
    which: Text,
    why: Text,
}

/// The connections of the server that have ended last. Its memory is static, as a static is never
/// dropped.
struct Ended {
    /// A ring.
    ends: [Option<End>; MAX_ENDED],
    next: usize,
}

impl Ended {
    const fn new() -> Self {
        Self {
            ends: [None; MAX_ENDED],
            next: 0,
        }
    }
}

/// Remembers that a connection has ended. `which` and `why` are columns, separated by tabs. Sleeps.
pub(crate) fn connection_ended(which: impl Display, why: impl Display) {
    let end = End {
        when: jiffies(),
        which: Text::new(which),
        why: Text::new(why),
    };
    let mut ended = ENDED.lock();
    let next = ended.next;
    if let Some(entry) = ended.ends.get_mut(next) {
        *entry = Some(end);
    }
    ended.next = (next + 1) % MAX_ENDED;
}

/// Shows the connections that have ended last, the latest one first: one line each, of the columns
/// that [`connection_ended`] got, with the seconds since then between.
pub(super) struct EndedConnections;

impl Show for EndedConnections {
    fn show(&self, lines: &mut Lines) -> fmt::Result {
        let ended = ENDED.lock();
        let (newer, older) = ended.ends.split_at_checked(ended.next).unwrap_or_default();
        for end in Iterator::chain(newer.iter().rev(), older.iter().rev()).flatten() {
            let (which, why) = (end.which.as_str(), end.why.as_str());
            let seconds = ms_since(end.when) / 1000;
            writeln!(lines, "{which}\t{seconds}\t{why}")?;
        }
        Ok(())
    }
}
