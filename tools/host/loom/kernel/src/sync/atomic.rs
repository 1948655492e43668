// SPDX-License-Identifier: GPL-2.0

//! Atomic variables.

use std::cell::Cell;
use std::cell::OnceCell;

use loom::sync::atomic::fence;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::AcqRel;
use loom::sync::atomic::Ordering::SeqCst;
pub use ordering::Relaxed;

/// Memory orders. Each is a type, as in the kernel.
pub mod ordering {
    use loom::sync::atomic::Ordering as Loom;

    /// A memory order.
    pub trait Ordering {
        /// The order of the operation itself.
        const ORDER: Loom;
        /// The order if a comparison fails: the kernel promises none.
        const FAILED: Loom = Loom::Relaxed;
        /// Whether the operation is a full barrier.
        const FULL: bool = false;
    }

    macro_rules! orders {
        ($($name:ident $order:ident $full:literal,)*) => {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub struct $name;

                impl Ordering for $name {
                    const ORDER: Loom = Loom::$order;
                    const FULL: bool = $full;
                }
            )*
        };
    }

    orders! {
        Relaxed Relaxed false,
        Acquire Acquire false,
        Release Release false,
        Full AcqRel true,
    }

    /// Orders of a load.
    pub trait AcquireOrRelaxed: Ordering {}
    impl AcquireOrRelaxed for Acquire {}
    impl AcquireOrRelaxed for Relaxed {}

    /// Orders of a store.
    pub trait ReleaseOrRelaxed: Ordering {}
    impl ReleaseOrRelaxed for Release {}
    impl ReleaseOrRelaxed for Relaxed {}
}

use ordering::AcquireOrRelaxed;
use ordering::Ordering;
use ordering::ReleaseOrRelaxed;

thread_local! {
    static FULL_IS_FENCE: Cell<bool> = const { Cell::new(true) };
    static ACCESSES_CONFLICT: Cell<bool> = const { Cell::new(false) };
}

/// Whether an operation with the order `Full` is between two full barriers, as in the kernel.
///
/// loom has any two full barriers order the accesses around them, whatever they access in
/// between. Without the barriers `Full` is acquire and release only, and loom finds data that
/// is not passed on by the variable itself.
pub fn full_is_fence(fences: bool) {
    FULL_IS_FENCE.set(fences);
}

/// Whether loom exchanges any two accesses of a variable, of which there are far more orders.
///
/// Without this, it exchanges an access with the last one before it that it conflicts with, and
/// with no earlier one: if a thread loads a value and then changes it, loom does not try the change
/// before the load of another thread. With this, each access counts itself first, without order,
/// and any two accesses of the count conflict.
pub fn accesses_conflict(conflict: bool) {
    ACCESSES_CONFLICT.set(conflict);
}

/// `smp_mb()`.
pub fn smp_mb() {
    fence(SeqCst);
}

/// Runs `operate`, between full barriers if the order is `Full`.
fn ordered<O: Ordering, R>(operate: impl FnOnce() -> R) -> R {
    let fences = O::FULL && FULL_IS_FENCE.get();
    if fences {
        fence(SeqCst);
    }
    let result = operate();
    if fences {
        fence(SeqCst);
    }
    result
}

/// A type of which there are atomic variables.
pub trait Value: Copy {
    /// The value as a word.
    fn into_word(self) -> usize;
    /// The value of a word.
    fn from_word(word: usize) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Value for $number {
            fn into_word(self) -> usize {
                self as usize
            }

            // A sum wraps.
            fn from_word(word: usize) -> Self {
                word as Self
            }
        })*
    };
}

numbers!(i32, u32, u64, usize);

impl Value for bool {
    fn into_word(self) -> usize {
        usize::from(self)
    }

    fn from_word(word: usize) -> Self {
        word != 0
    }
}

impl<T> Value for *mut T {
    fn into_word(self) -> usize {
        self.expose_provenance()
    }

    fn from_word(word: usize) -> Self {
        ::core::ptr::with_exposed_provenance_mut(word)
    }
}

/// An atomic variable. loom learns of it by the first access, which has to be before others: a
/// model that shares a new variable reads it first.
pub struct Atomic<T> {
    initial: T,
    word: OnceCell<Word>,
}

struct Word {
    value: AtomicUsize,
    accesses: AtomicUsize,
}

// SAFETY: loom runs one thread of a model at a time, and the word is shared within a model.
unsafe impl<T> Send for Atomic<T> {}
// SAFETY: As above.
unsafe impl<T> Sync for Atomic<T> {}

impl<T: Value> Atomic<T> {
    /// A variable with this value.
    pub const fn new(initial: T) -> Self {
        Self {
            initial,
            word: OnceCell::new(),
        }
    }

    fn word(&self) -> &AtomicUsize {
        let word = self.word.get_or_init(|| Word {
            value: AtomicUsize::new(self.initial.into_word()),
            accesses: AtomicUsize::new(0),
        });
        if ACCESSES_CONFLICT.get() {
            word.accesses
                .fetch_add(1, loom::sync::atomic::Ordering::Relaxed);
        }
        &word.value
    }

    /// The value.
    pub fn load<O: AcquireOrRelaxed>(&self, _: O) -> T {
        T::from_word(self.word().load(O::ORDER))
    }

    /// Sets the value.
    pub fn store<O: ReleaseOrRelaxed>(&self, value: T, _: O) {
        self.word().store(value.into_word(), O::ORDER);
    }

    /// Sets the value, and returns the old one.
    pub fn xchg<O: Ordering>(&self, value: T, _: O) -> T {
        let swap = || self.word().swap(value.into_word(), O::ORDER);
        T::from_word(ordered::<O, _>(swap))
    }

    /// Sets the value if it is `old`. Returns the old one, as an error if it is another.
    ///
    /// # Errors
    ///
    /// The value, if it is not `old`. That is no barrier.
    pub fn cmpxchg<O: Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
        let fences = O::FULL && FULL_IS_FENCE.get();
        if fences {
            fence(SeqCst);
        }
        let (old, new) = (old.into_word(), new.into_word());
        let was = self
            .word()
            .compare_exchange(old, new, O::ORDER, O::FAILED)
            .map_err(T::from_word)?;
        if fences {
            fence(SeqCst);
        }
        Ok(T::from_word(was))
    }

    /// Adds `delta`, with wraparound. Returns the old value.
    pub fn fetch_add<O: Ordering>(&self, delta: T, _: O) -> T {
        let add = || self.word().fetch_add(delta.into_word(), O::ORDER);
        T::from_word(ordered::<O, _>(add))
    }

    /// Subtracts `delta`, with wraparound. Returns the old value.
    pub fn fetch_sub<O: Ordering>(&self, delta: T, _: O) -> T {
        let sub = || self.word().fetch_sub(delta.into_word(), O::ORDER);
        T::from_word(ordered::<O, _>(sub))
    }
}

const _: () = assert!(matches!(<ordering::Full as Ordering>::ORDER, AcqRel));
