// SPDX-License-Identifier: GPL-2.0

//! Trace events, `events/rpcrdma` in tracefs.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)
//!
//! The events are defined in C (`include/trace/events`). Most have the names and formats of the C
//! module, so that existing scripts work. Each event is a module here with two functions:
//! `enabled()`, a static branch, and `emit()`. Callers write
//!
//! ```ignore
//! trace!(svcrdma_post_send(cid, num_sge, inv_rkey));
//! ```
//!
//! Arguments are evaluated only if the event is enabled. They are plain values, so this room does
//! not import the types of its callers. `kernel::tracepoint::declare_trace!` does not fit: the
//! functions that it declares are unsafe, and evaluate their arguments always.

mod args;
mod client;
mod device;
mod server;

pub(crate) use args::{
    ChunkType,
    Cid,
    Mr,
    Task, //
};
pub(crate) use client::*;
pub(crate) use device::*;
pub(crate) use server::*;

/// Emits a trace event if it is enabled. The arguments are evaluated only then.
macro_rules! trace {
    ($event:ident($($arg:expr),* $(,)?)) => {
        if $crate::trace::$event::enabled() {
            $crate::trace::$event::emit($($arg),*);
        }
    };
}
pub(crate) use trace;

/// Declares trace events that are defined in C, with the types of their arguments in Rust.
macro_rules! events {
    ($($(#[$doc:meta])* fn $event:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {$(
        $(#[$doc])*
        pub(crate) mod $event {
            #[allow(unused_imports)]
            use super::*;

            /// Returns whether the event is enabled.
            #[inline(always)]
            pub(crate) fn enabled() -> bool {
                $crate::trace::listened!($event)
            }

            /// Records one occurrence.
            #[cold]
            pub(crate) fn emit($($arg: $ty),*) {
                #[cfg(CONFIG_TRACEPOINTS)]
                ::kernel::macros::paste! {
                    // SAFETY: The event copies its arguments before it returns. Until then this
                    // function holds them, as the contract of `Argument` requires.
                    unsafe {
                        $crate::bindings::[<rust_do_trace_ $event>](
                            $($crate::trace::args::Argument::raw(&$arg)),*
                        )
                    };
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                {
                    $(let _ = $arg;)*
                }
            }
        }
    )*};
}
use events;

/// The static branch of one event.
macro_rules! listened {
    ($event:ident) => {{
        #[cfg(CONFIG_TRACEPOINTS)]
        {
            ::kernel::macros::paste! {
                // SAFETY: The tracepoint is a static of this module.
                unsafe {
                    ::kernel::jump_label::static_branch_unlikely!(
                        $crate::bindings::[<__tracepoint_ $event>],
                        $crate::bindings::tracepoint,
                        key
                    )
                }
            }
        }
        #[cfg(not(CONFIG_TRACEPOINTS))]
        {
            false
        }
    }};
}
use listened;
