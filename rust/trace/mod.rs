// SPDX-License-Identifier: GPL-2.0

//! Trace events: `events/rpcrdma` in tracefs.
//!
//! The events are defined in C (`include/trace/events`). Most have the names and formats of the C
//! module, so existing scripts apply. Each event is a module here with two functions: `enabled`, a
//! static branch, and `emit`. Callers write
//!
//! ```ignore
//! trace!(svcrdma_post_send(cid, num_sge, inv_rkey));
//! ```
//!
//! The arguments are evaluated only while the event is enabled. They are plain values, so this room
//! need not know the types of its callers.

mod args;
mod client;
mod device;
mod server;

pub(crate) use args::{
    Cid,
    Conveyance,
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

/// Declares events that exist in C, by name and with the types that Rust callers see.
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
                    // SAFETY: The event copies what it is given while the call lasts. Scalars are
                    // always good; `Argument` makes pointers only of what is borrowed or held by
                    // this function.
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
                // SAFETY: The static key of a tracepoint may be read at any time.
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
