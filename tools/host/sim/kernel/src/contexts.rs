// SPDX-License-Identifier: GPL-2.0

//! Contexts: they start, wait, are woken, lose their CPU, and end.

use std::panic::{catch_unwind, AssertUnwindSafe};

use corosensei::{stack::DefaultStack, Coroutine, CoroutineResult, Yielder};

use super::world::{current, priority, world, Context, Job, State, CURRENT, LEFT};
use crate::chance::below;
use crate::say;

/// The bytes of the stack of a context.
const STACK: usize = 512 << 10;

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

pub(super) fn resume(id: usize) {
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
