// SPDX-License-Identifier: GPL-2.0

//! The scheduler: which step of a run is next.
//!
//! A run is a sequence of steps. In each step chance picks one thing that can go on: a context that
//! does not wait, or what a [`Source`] has pending, such as a device. If there is none, the clock
//! advances to the next timer. If there is no timer either, the run is over.

use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

pub use crate::chance::{below, one_in, pick, random};
use crate::{chance, say};
pub use contexts::{
    alive, at, cancel, fail, preempt, spawn, wait_for_work, wait_on, wait_until, waiting, wake,
    Timer,
};
pub use module_code::{in_module_code, module_code, synchronize_tasks};
pub(crate) use scopes::{may_lock, no_sleep_reason};
pub use scopes::{no_sleep, only_locks};
pub use story::{story, tell, tells, traces};
pub use world::{
    abandon, add_source, begin, current, failure, jiffies, now, steps, Config, Source,
};
pub(crate) use world::{with_held, Held};

use contexts::resume;
use world::{world, Job, State};

#[path = "contexts.rs"]
mod contexts;
#[path = "module_code.rs"]
mod module_code;
#[path = "scopes.rs"]
mod scopes;
#[path = "story.rs"]
mod story;
#[path = "world.rs"]
mod world;

thread_local! {
    /// The context of the last step.
    static LAST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Why a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing can happen any more.
    Quiet,
    /// The condition of the caller holds.
    Stopped,
    /// The number of steps is used up.
    Steps,
}

enum Choice {
    Context(usize),
    Source(Rc<dyn Source>, usize),
    Timer(Job),
}

impl Choice {
    /// Says what is next, if it is another context than before.
    fn tell(&self) {
        if let Self::Context(id) = *self {
            if LAST.replace(id) != id {
                say!("{} runs", world(|w| w.contexts[id].name.clone()));
            }
        }
    }
}

fn choose() -> Option<Choice> {
    let sources: Vec<(Rc<dyn Source>, u64)> = world(|w| w.sources.clone());
    // Not with the world borrowed: a source may look at it.
    let pending: Vec<usize> = sources.iter().map(|(source, _)| source.pending()).collect();
    world(|w| {
        let ready = (0..w.contexts.len()).filter(|&id| w.contexts[id].state == State::Ready);
        let ready: Vec<usize> = ready.collect();
        let due = w
            .timers
            .first_key_value()
            .is_some_and(|((time, _), _)| *time <= w.now);
        let total = ready.len() + pending.iter().sum::<usize>() + usize::from(due);
        if total == 0 {
            let ((time, _), job) = w.timers.pop_first()?;
            w.now = w.now.max(time);
            return Some(Choice::Timer(job));
        }
        let mut nth = if w.priorities {
            if one_in(40) {
                let change = below(w.contexts.len() + w.sources.len());
                let priority = chance::any();
                match change.checked_sub(w.contexts.len()) {
                    None => w.contexts[change].priority = priority,
                    Some(source) => w.sources[source].1 = priority,
                }
            }
            let context = ready
                .iter()
                .enumerate()
                .max_by_key(|(_, &id)| w.contexts[id].priority);
            let source = (0..sources.len())
                .filter(|&n| pending[n] > 0)
                .max_by_key(|&n| w.sources[n].1);
            match (context, source) {
                (Some((nth, &id)), Some(source)) => {
                    if w.contexts[id].priority >= w.sources[source].1 {
                        nth
                    } else {
                        first_of(&pending, source, ready.len())
                    }
                }
                (Some((nth, _)), None) => nth,
                (None, Some(source)) => first_of(&pending, source, ready.len()),
                (None, None) => total - 1,
            }
        } else {
            below(total)
        };
        if let Some(&id) = ready.get(nth) {
            return Some(Choice::Context(id));
        }
        nth -= ready.len();
        for ((source, _), &count) in sources.iter().zip(&pending) {
            if nth < count {
                return Some(Choice::Source(source.clone(), nth));
            }
            nth -= count;
        }
        let (_, job) = w.timers.pop_first()?;
        Some(Choice::Timer(job))
    })
}

/// A random step of a source, as the number of a choice.
fn first_of(pending: &[usize], source: usize, before: usize) -> usize {
    let skipped: usize = pending[..source].iter().sum();
    before + skipped + below(pending[source])
}

/// The number of steps in which anything has to be over.
pub const MOST_STEPS: u64 = 2_000_000;

/// Runs until `done` holds. No context may wait for ever.
///
/// # Errors
///
/// The law that does not hold, or that `what` does not end.
pub fn run_until(what: &str, mut done: impl FnMut() -> bool) -> Result<(), String> {
    match run(MOST_STEPS, &mut done)? {
        Ended::Stopped => Ok(()),
        Ended::Quiet if done() => Ok(()),
        Ended::Quiet => Err(format!("{what}: waits for ever; {:?}", waiting())),
        Ended::Steps => Err(format!("{what}: no end; {:?}", waiting())),
    }
}

/// Does steps until `stop` holds, nothing can happen any more, or `most` are done.
///
/// # Errors
///
/// The law that does not hold. Nothing of this run may be used any more.
pub fn run(most: u64, mut stop: impl FnMut() -> bool) -> Result<Ended, String> {
    for _ in 0..most {
        if stop() {
            return Ok(Ended::Stopped);
        }
        let Some(choice) = choose() else {
            return Ok(Ended::Quiet);
        };
        if steps() >= chance::limit() {
            return Err("no end".into());
        }
        if chance::replays() {
            choice.tell();
        }
        world(|w| {
            w.steps += 1;
            w.now += chance::pace();
        });
        let done = match choice {
            Choice::Context(id) => {
                resume(id);
                Ok(())
            }
            Choice::Source(source, nth) => catch_unwind(AssertUnwindSafe(|| source.run(nth))),
            Choice::Timer(job) => catch_unwind(AssertUnwindSafe(job)),
        };
        if let Err(panic) = done {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            world(|w| {
                w.failed.get_or_insert(text);
            });
        }
        if let Some(why) = failure() {
            return Err(why);
        }
    }
    Ok(Ended::Steps)
}
