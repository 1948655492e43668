// SPDX-License-Identifier: GPL-2.0

//! Contexts of execution, and the clock.
//!
//! A run is a sequence of steps. In each step chance picks one thing that can go on: a context that
//! does not wait, or what a [`Source`] has pending, such as a device. If there is none, the clock
//! advances to the next timer. If there is no timer either, the run is over.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

pub use crate::chance::{below, one_in, random};
use crate::{chance, say};
pub use module_code::{in_module_code, module_code, synchronize_tasks};
pub(crate) use scopes::{may_lock, no_sleep_reason};
pub use scopes::{no_sleep, only_locks};
pub use story::{story, tell, tells, traces};

use corosensei::{stack::DefaultStack, Coroutine, CoroutineResult, Yielder};

#[path = "module_code.rs"]
mod module_code;
#[path = "scopes.rs"]
mod scopes;
#[path = "story.rs"]
mod story;

/// The bytes of the stack of a context.
const STACK: usize = 512 << 10;

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

/// Something that has steps of its own, such as a device.
pub trait Source {
    /// The number of steps that could be next.
    fn pending(&self) -> usize;
    /// Does one of these steps.
    fn run(&self, nth: usize);
}

type Job = Box<dyn FnOnce()>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
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

struct Context {
    name: String,
    job: Option<Job>,
    state: State,
    priority: u64,
    coroutine: Option<Coroutine<(), (), (), DefaultStack>>,
    yielder: *const Yielder<(), ()>,
    held: Vec<Held>,
    /// Why it must not sleep, beside the locks that it holds.
    no_sleep: Vec<&'static str>,
    /// The only classes of locks that it may take, if any may be wrong.
    only_locks: Option<&'static [&'static str]>,
    timed_out: bool,
    /// How deep it is in code of the module.
    in_module: usize,
    /// How often it has waited or ended.
    sleeps: u64,
}

#[derive(Default)]
struct World {
    contexts: Vec<Context>,
    sources: Vec<(Rc<dyn Source>, u64)>,
    timers: BTreeMap<(u64, u64), Job>,
    next_timer: u64,
    now: u64,
    steps: u64,
    priorities: bool,
    preempt: u32,
    failed: Option<String>,
    story: Option<VecDeque<String>>,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
    /// The context that runs; `usize::MAX` if none does.
    static CURRENT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Accesses until the context that runs loses its CPU; 0 means never.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// The context of the last step.
    static LAST: Cell<usize> = const { Cell::new(usize::MAX) };
    static TELLS: Cell<bool> = const { Cell::new(false) };
    static TRACES: Cell<bool> = const { Cell::new(false) };
}

fn world<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(f)
}

/// Begins a run. Contexts of the last run have ended.
pub fn begin(config: &Config) {
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

/// Adds a source of steps.
pub fn add_source(source: Rc<dyn Source>) {
    world(|w| {
        let priority = priority(w.priorities);
        w.sources.push((source, priority));
    });
}

/// The priority of a context or a source.
fn priority(priorities: bool) -> u64 {
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

/// Ends the run: a law does not hold. The context that calls this never goes on.
#[track_caller]
pub fn fail(why: impl core::fmt::Display) -> ! {
    say!("FAILED: {why}");
    let why = why.to_string();
    world(|w| {
        w.failed.get_or_insert(why.clone());
    });
    if current().is_some() && !std::thread::panicking() {
        loop {
            suspend();
        }
    }
    panic!("{why}");
}

/// The context that runs, if one does.
pub(crate) fn current() -> Option<usize> {
    let id = CURRENT.get();
    (id != usize::MAX).then_some(id)
}

pub(crate) fn with_held<R>(f: impl FnOnce(&mut Vec<Held>) -> R) -> Option<R> {
    current().map(|id| world(|w| f(&mut w.contexts[id].held)))
}

fn suspend() {
    let id = CURRENT.get();
    let yielder = world(|w| w.contexts[id].yielder);
    // SAFETY: The context runs, on its own stack, on which the yielder is.
    unsafe { (*yielder).suspend(()) };
}

/// The context may lose its CPU here.
#[inline]
pub fn preempt() {
    let left = LEFT.get();
    if left == 0 {
        return;
    }
    LEFT.set(left - 1);
    if left == 1 {
        lose_cpu();
    }
}

#[cold]
fn lose_cpu() {
    if current().is_none() || std::thread::panicking() {
        LEFT.set(1);
        return;
    }
    suspend();
}

/// Has the context wait until `key` is woken. There may be other reasons to wake.
pub fn wait_on(key: usize) {
    wait(key, false, None);
}

/// The same, for a context whose wait may outlast the run, since it serves others.
pub fn wait_for_work(key: usize) {
    wait(key, true, None);
}

/// The same until a time at most; `false` if that has come.
pub fn wait_until(key: usize, deadline: u64) -> bool {
    wait(key, false, Some(deadline))
}

fn wait(key: usize, service: bool, deadline: Option<u64>) -> bool {
    if std::thread::panicking() {
        return true;
    }
    let Some(id) = current() else {
        fail("the stage itself must not wait");
    };
    world(|w| {
        w.contexts[id].state = State::Waiting { key, service };
        w.contexts[id].timed_out = false;
        w.contexts[id].sleeps += 1;
    });
    let timer = deadline.map(|deadline| {
        at(deadline, move || {
            world(|w| {
                w.contexts[id].timed_out = true;
                w.contexts[id].state = State::Ready;
            });
        })
    });
    suspend();
    if let Some(timer) = timer {
        cancel(timer);
    }
    !world(|w| w.contexts[id].timed_out)
}

/// Wakes all contexts that wait for `key`.
pub fn wake(key: usize) {
    world(|w| {
        for context in &mut w.contexts {
            if matches!(context.state, State::Waiting { key: other, .. } if other == key) {
                context.state = State::Ready;
            }
        }
    });
}

/// A timer.
#[derive(Clone, Copy, Debug)]
pub struct Timer(u64, u64);

/// Calls `job` at this time, outside of all contexts: it must not wait.
pub fn at(time: u64, job: impl FnOnce() + 'static) -> Timer {
    world(|w| {
        w.next_timer += 1;
        let id = (time.max(w.now), w.next_timer);
        w.timers.insert(id, Box::new(job));
        Timer(id.0, id.1)
    })
}

/// Cancels a timer; `false` if it has expired.
pub fn cancel(timer: Timer) -> bool {
    world(|w| w.timers.remove(&(timer.0, timer.1))).is_some()
}

/// Starts a context.
pub fn spawn(name: impl Into<String>, job: impl FnOnce() + 'static) {
    let name = name.into();
    let job: Job = Box::new(job);
    let idle = world(|w| w.contexts.iter().position(|c| c.state == State::Idle));
    let id = idle.unwrap_or_else(new_context);
    world(|w| {
        let priority = priority(w.priorities);
        let context = &mut w.contexts[id];
        context.name = name;
        context.job = Some(job);
        context.state = State::Ready;
        context.priority = priority;
    });
}

fn new_context() -> usize {
    let id = world(|w| w.contexts.len());
    let stack = DefaultStack::new(STACK).expect("a stack");
    let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        world(|w| w.contexts[id].yielder = yielder);
        loop {
            let job = world(|w| w.contexts[id].job.take());
            if let Some(job) = job {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
                    let text = panic
                        .downcast_ref::<String>()
                        .cloned()
                        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                    let text = text.unwrap_or_default();
                    fail(format_args!("panic: {text}"));
                }
            }
            let held = world(|w| w.contexts[id].held.first().map(|held| held.class));
            if let Some(class) = held {
                fail(format_args!("a context ends with the lock {class} held"));
            }
            world(|w| {
                w.contexts[id].state = State::Idle;
                w.contexts[id].sleeps += 1;
            });
            yielder.suspend(());
        }
    });
    world(|w| {
        w.contexts.push(Context {
            name: String::new(),
            job: None,
            state: State::Idle,
            priority: 0,
            coroutine: Some(coroutine),
            yielder: core::ptr::null(),
            held: Vec::new(),
            no_sleep: Vec::new(),
            only_locks: None,
            timed_out: false,
            in_module: 0,
            sleeps: 0,
        });
    });
    id
}

/// The names of the contexts that wait, though they serve no others, and of the locks that they
/// hold.
pub fn waiting() -> Vec<String> {
    world(|w| {
        let waits = w.contexts.iter().filter(|context| {
            matches!(
                context.state,
                State::Waiting { service: false, .. } | State::Ready
            )
        });
        let describe = |context: &Context| {
            let held: Vec<&str> = context.held.iter().map(|held| held.class).collect();
            format!("{} (holds {held:?})", context.name)
        };
        waits.map(describe).collect()
    })
}

/// The number of contexts that have not ended.
pub fn alive() -> usize {
    world(|w| w.contexts.iter().filter(|c| c.state != State::Idle).count())
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

fn resume(id: usize) {
    let coroutine = world(|w| {
        let left = match w.preempt {
            0 => 0,
            n => below(2 * n as usize + 1) as u32,
        };
        LEFT.set(left);
        w.contexts[id].coroutine.take()
    });
    let mut coroutine = coroutine.expect("a context that does not run");
    CURRENT.set(id);
    let result = coroutine.resume(());
    CURRENT.set(usize::MAX);
    LEFT.set(0);
    assert!(matches!(result, CoroutineResult::Yield(())));
    world(|w| w.contexts[id].coroutine = Some(coroutine));
}

/// Gives up everything of a run that has failed: its contexts never go on.
pub fn abandon() {
    world(|w| {
        let steps = w.steps;
        core::mem::forget(core::mem::take(w));
        w.steps = steps;
    });
}
