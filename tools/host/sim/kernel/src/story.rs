// SPDX-License-Identifier: GPL-2.0

//! The story of a run: what its contexts and devices have done. Trace events are no part of it.

use super::world::{current, world, TELLS, TRACES};

/// The lines of a story that are kept.
const LINES: usize = 4000;

/// Whether the story is kept.
pub fn tells() -> bool {
    TELLS.get()
}

/// Whether trace events are enabled.
pub fn traces() -> bool {
    TRACES.get()
}

/// Adds a line to the story. Use [`say!`](crate::say).
pub fn tell(line: core::fmt::Arguments<'_>) {
    let who = current().map_or_else(String::new, |id| world(|w| w.contexts[id].name.clone()));
    world(|w| {
        let (step, ms) = (w.steps, w.now as f64 / 1e6);
        if let Some(story) = &mut w.story {
            if story.len() == LINES {
                story.pop_front();
            }
            story.push_back(format!("{step:>6} {ms:>10.3}ms {who:<16} {line}"));
        }
    });
}

/// Adds a line to the story, if it is kept.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => {
        if $crate::sched::tells() {
            $crate::sched::tell(format_args!($($arg)*));
        }
    };
}

/// The story so far.
pub fn story() -> Vec<String> {
    world(|w| w.story.iter().flatten().cloned().collect())
}
