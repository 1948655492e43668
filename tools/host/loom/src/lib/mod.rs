// SPDX-License-Identifier: GPL-2.0

//! `rust/lib`.

#[path = "../../../../../rust/lib/llist.rs"]
pub(crate) mod llist;
#[path = "../../../../../rust/lib/llist_box.rs"]
pub(crate) mod llist_box;
pub(crate) mod sync {
    pub(crate) use kernel::sync::atomic::Atomic;
}

mod stack;
