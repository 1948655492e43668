// SPDX-License-Identifier: GPL-2.0

//! The world of a run: its contexts, sources, timers and time, from the beginning of the run on.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use corosensei::{stack::DefaultStack, Coroutine, Yielder};

use crate::{chance, memory};

/// The first value of `jiffies`, as in the kernel: 32 bits wrap around after five minutes.
const INITIAL_JIFFIES: u64 = (1 << 32) - 300_000;

/// How a run is scheduled.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Where all chance comes from.
    pub seed: u64,
    /// A context loses its CPU at one in so many accesses to locks and atomic variables; 0 means
    /// only where it waits.
    pub preempt: u32,
    /// Contexts and sources have priorities, which change now and then, instead of equal chances.
    pub priorities: bool,
    /// Whether trace events are enabled.
    pub traces: bool,
    /// Whether a task reads the files of debugfs.
    pub reads: bool,
    /// Whether to keep the story.
    pub story: bool,
}

/// Something that has steps of its own, such as a device.
pub trait Source {
    /// The number of steps that could be next.
    fn pending(&self) -> usize;
    /// Does one of these steps.
    fn run(&self, nth: usize);
}

pub(super) type Job = Box<dyn FnOnce()>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Can go on.
    Ready,
    /// Waits for a key to be woken.
    Waiting { key: usize, service: bool },
    /// Has no job.
    Idle,
}

/// A lock that a context holds.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub(crate) lock: usize,
    pub(crate) class: &'static str,
    pub(crate) spins: bool,
}

pub(super) struct Context {
    pub(super) name: String,
    pub(super) job: Option<Job>,
    pub(super) state: State,
    pub(super) priority: u64,
    pub(super) coroutine: Option<Coroutine<(), (), (), DefaultStack>>,
    pub(super) yielder: *const Yielder<(), ()>,
    pub(super) held: Vec<Held>,
    /// Why it must not sleep, beside the locks that it holds.
    pub(super) no_sleep: Vec<&'static str>,
    /// The only classes of locks that it may take, if any may be wrong.
    pub(super) only_locks: Option<&'static [&'static str]>,
    pub(super) timed_out: bool,
    /// How deep it is in code of the module.
    pub(super) in_module: usize,
    /// How often it has waited or ended.
    pub(super) sleeps: u64,
}

#[derive(Default)]
pub(super) struct World {
    pub(super) contexts: Vec<Context>,
    pub(super) sources: Vec<(Rc<dyn Source>, u64)>,
    pub(super) timers: BTreeMap<(u64, u64), Job>,
    pub(super) next_timer: u64,
    pub(super) now: u64,
    pub(super) steps: u64,
    pub(super) priorities: bool,
    pub(super) preempt: u32,
    pub(super) failed: Option<String>,
    pub(super) story: Option<VecDeque<String>>,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
    /// The context that runs; `usize::MAX` if none does.
    pub(super) static CURRENT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Accesses until the context that runs loses its CPU; 0 means never.
    pub(super) static LEFT: Cell<u32> = const { Cell::new(0) };
    pub(super) static TELLS: Cell<bool> = const { Cell::new(false) };
    pub(super) static TRACES: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn world<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(f)
}

/// Begins a run. Contexts of the last run have ended.
pub fn begin(config: &Config) {
    memory::begin();
    world(|w| {
        assert!(w.failed.is_none(), "a run has failed before");
        w.sources.clear();
        w.timers.clear();
        w.now = 0;
        w.steps = 0;
        chance::begin(config.seed);
        w.priorities = config.priorities;
        w.preempt = config.preempt;
        w.story = config.story.then(VecDeque::new);
        for context in &mut w.contexts {
            context.priority = priority(config.priorities);
        }
    });
    TELLS.set(config.story);
    TRACES.set(config.traces);
    LEFT.set(0);
}

/// Gives up everything of a run that has failed: its contexts never go on.
pub fn abandon() {
    world(|w| {
        let steps = w.steps;
        core::mem::forget(core::mem::take(w));
        w.steps = steps;
    });
}

/// Adds a source of steps.
pub fn add_source(source: Rc<dyn Source>) {
    world(|w| {
        let priority = priority(w.priorities);
        w.sources.push((source, priority));
    });
}

/// The priority of a context or a source.
pub(super) fn priority(priorities: bool) -> u64 {
    priorities.then(chance::any).unwrap_or(0)
}

/// The nanoseconds since the run began.
pub fn now() -> u64 {
    world(|w| w.now)
}

/// `jiffies`, at 1000 a second.
pub fn jiffies() -> u64 {
    INITIAL_JIFFIES + now() / 1_000_000
}

/// The steps since the run began.
pub fn steps() -> u64 {
    world(|w| w.steps)
}

/// Why the run has failed.
pub fn failure() -> Option<String> {
    world(|w| w.failed.clone())
}

/// The context that runs, if one does.
pub fn current() -> Option<usize> {
    let id = CURRENT.get();
    (id != usize::MAX).then_some(id)
}

pub(crate) fn with_held<R>(f: impl FnOnce(&mut Vec<Held>) -> R) -> Option<R> {
    current().map(|id| world(|w| f(&mut w.contexts[id].held)))
}
