// SPDX-License-Identifier: GPL-2.0

//! What an administrator sets: each test has its own.

pub(crate) mod server {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static MAX_REQUESTS: Cell<u32> = const { Cell::new(128) };
        pub(crate) static MAX_BC_REQUESTS: Cell<u32> = const { Cell::new(16) };
        pub(crate) static MAX_REQ_SIZE: Cell<u32> = const { Cell::new(4096) };
        pub(crate) static MAX_REPLY_SIZE: Cell<u32> = const { Cell::new(0) };
        pub(crate) static REMOTE_INVALIDATION: Cell<u32> = const { Cell::new(1) };
    }
}
