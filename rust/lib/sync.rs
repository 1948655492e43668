// SPDX-License-Identifier: GPL-2.0

//! Atomic variables, and values that are set at most once.

#[cfg(not(CONFIG_64BIT))]
use crate::compat::sync;

pub(crate) use super::set_once::SetOnce;

// Where atomic variables may be larger than a word, all operations are the kernel's.
#[cfg(CONFIG_64BIT)]
pub(crate) use super::atomic::Atomic;
#[cfg(not(CONFIG_64BIT))]
pub(crate) use sync::Atomic;
