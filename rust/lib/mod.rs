// SPDX-License-Identifier: GPL-2.0

//! Containers, pages and other small types, for any room above.
//!
//! The kernel crate has no counterpart of these types, or none that fits. Each file says why.
//!
//! | file              | what                                                        |
//! |-------------------|-------------------------------------------------------------|
//! | `llist`           | lists of objects that contain their link                    |
//! | `llist_box`       | boxes for such lists                                        |
//! | `grow_list`       | a list that only grows                                      |
//! | `pool`            | pools of idle objects                                       |
//! | `ring`            | a queue of limited length                                   |
//! | `bvec`            | a run of bytes within a page                                |
//! | `pages`           | owned pages                                                 |
//! | `displaced_pages` | pages that NFSD displaces from a request                    |
//! | `fence`           | memory that a peer can reach, and the proofs that it cannot |
//! | `foreign_buf`     | owned buffers that C keeps                                  |
//! | `delayed_work`    | delayed work that its owner cancels                         |
//! | `completion`      | completions with a timeout                                  |
//! | `poll_timer`      | a timer that calls its owner in a worker                    |
//! | `memalloc`        | allocation scopes (`memalloc_*_save()`)                     |
//! | `barrier`         | memory barriers                                             |
//! | `gfp`             | whether an allocation may sleep                             |
//! | `sockaddr`        | socket addresses and network namespaces                     |
//! | `atomic`          | loads and stores of atomic variables                        |
//! | `atomic_x86`      | all other operations on them, for x86                       |
//! | `set_once`        | a value that is set at most once                            |
//! | `sync`            | atomics and `set_once`, by the names that other files use   |
//! | `counter`         | counters and gauges                                         |
//! | `ratelimit`       | the rate limit of log messages                              |
//! | `clock`           | times of events                                             |
//! | `close_reason`    | why a connection has ended                                  |

#[cfg(CONFIG_64BIT)]
mod atomic;
#[cfg(all(CONFIG_X86_64, not(any(CONFIG_KASAN, CONFIG_KCSAN))))]
mod atomic_x86;
pub(crate) mod barrier;
pub(crate) mod bvec;
pub(crate) mod clock;
pub(crate) mod close_reason;
pub(crate) mod completion;
pub(crate) mod counter;
pub(crate) mod delayed_work;
pub(crate) mod displaced_pages;
pub(crate) mod fence;
pub(crate) mod foreign_buf;
pub(crate) mod gfp;
pub(crate) mod grow_list;
pub(crate) mod llist;
pub(crate) mod llist_box;
pub(crate) mod memalloc;
pub(crate) mod pages;
pub(crate) mod poll_timer;
pub(crate) mod pool;
pub(crate) mod ratelimit;
pub(crate) mod ring;
mod set_once;
pub(crate) mod sockaddr;
pub(crate) mod sync;
