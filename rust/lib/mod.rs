// SPDX-License-Identifier: GPL-2.0

//! Containers, pages and other small types that any room above may use.
//!
//! The kernel crate has no counterpart for these, or none that fits: each file says why.
//!
//! | file              | what                                                       |
//! |-------------------|------------------------------------------------------------|
//! | `llist`           | lists that link the objects themselves                     |
//! | `llist_box`       | boxes for such lists                                       |
//! | `pool`            | idle objects in such lists                                 |
//! | `pages`           | whole pages that the holder owns                           |
//! | `displaced_pages` | pages noted in a request, and owned once displaced from it |
//! | `bvec`            | a run of bytes within a page                               |
//! | `fence`           | memory that a peer can reach, and the proofs that it cannot |
//! | `foreign_buf`     | owned buffers that C keeps for a while                     |
//! | `delayed_work`    | delayed work                                               |
//! | `memalloc`        | allocation scopes (`memalloc_*_save`)                      |
//! | `gfp`             | whether an allocation may sleep                            |
//! | `sockaddr`        | addresses and network namespaces                           |
//! | `counter`         | counters and gauges                                        |

pub(crate) mod bvec;
pub(crate) mod counter;
pub(crate) mod delayed_work;
pub(crate) mod displaced_pages;
pub(crate) mod fence;
pub(crate) mod foreign_buf;
pub(crate) mod gfp;
pub(crate) mod llist;
pub(crate) mod llist_box;
pub(crate) mod memalloc;
pub(crate) mod pages;
pub(crate) mod pool;
pub(crate) mod sockaddr;
