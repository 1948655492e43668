// SPDX-License-Identifier: GPL-2.0

//! Trace events, whose arguments are evaluated and dropped.

macro_rules! trace {
    ($event:ident($($arg:expr),* $(,)?)) => {{
        $(let _ = &$arg;)*
    }};
}
pub(crate) use trace;
