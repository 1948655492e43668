// SPDX-License-Identifier: GPL-2.0

//! Files under `/sys/kernel/debug/rpcrdma`, which show the state of connections.
//!
//! Without `CONFIG_DEBUG_FS`, or when a file cannot be created, there is no file, and all else
//! works.
//!
//! | file    | what                                     |
//! |---------|------------------------------------------|
//! | `lines` | the text of a file                       |
//! | `ended` | the server's connections that have ended |
//! | `dir`   | the directories of the two ends          |
//! | `file`  | a file                                   |
//! | `tree`  | the whole tree                           |

mod dir;
mod ended;
mod file;
mod lines;
mod tree;

pub(crate) use dir::{
    CLIENT,
    SERVER, //
};
pub(crate) use ended::connection_ended;
pub(crate) use file::{
    File,
    Removable, //
};
pub(crate) use lines::{
    Lines,
    Show, //
};
pub(crate) use tree::Tree;
