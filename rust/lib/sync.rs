// SPDX-License-Identifier: GPL-2.0

//! Atomic variables, and values that are set at most once.

use crate::compat::sync;

/// The kernel crate's `Atomic`, or its replacement on kernels that lack some.
pub(crate) type Atomic<T> = sync::Atomic<T>;

/// The kernel crate's `SetOnce`, or its replacement.
pub(crate) type SetOnce<T> = sync::SetOnce<T>;
