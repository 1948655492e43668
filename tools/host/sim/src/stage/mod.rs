// SPDX-License-Identifier: GPL-2.0

//! The stage: worlds, peers, programs, and the plays with their laws.
//!
//! | file             | what                                                |
//! |------------------|-----------------------------------------------------|
//! | `rpc`            | RPCs: Calls and Replies whose every byte is known   |
//! | `nfsd`           | the program that the server runs, and its book      |
//! | `peer_calls`     | Calls of a client that is beside the module         |
//! | `peer`           | such a client, and its connections                  |
//! | `peer_steps`     | the steps of such a client                          |
//! | `hostile`        | what peers do that do not keep to the protocol      |
//! | `hostile_client` | such a client                                       |
//! | `hostile_server` | such a server                                       |
//! | `hostile_plays`  | the plays with them                                 |
//! | `illegal_calls`  | a play with a server whose Calls are to be refused  |
//! | `callbacks`      | backchannel Calls                                   |
//! | `files`          | readers of the files of debugfs                     |
//! | `file_laws`      | what these files say                                |
//! | `closings`       | SUNRPC closes connections                           |
//! | `outcome`        | what becomes of an RPC, and what a play has seen    |
//! | `faults`         | what a play draws                                   |
//! | `unload`         | a play in which the module is unloaded              |
//! | `spare_pages`    | a play in which clients leave                       |
//! | `long_calls`     | a play with Calls that are too long to be sent      |
//! | `stalled_reads`  | a play with a client that answers no Read           |
//! | `silent_peers`   | a play with peers that never send a message         |
//! | `suspended`      | a play in which the server is suspended             |
//! | `away`           | a play in which the server is away                  |
//! | `unanswered`     | a play in which nothing answers requests to connect |
//! | `world`          | loads and unloads the module, and what must be left |
//! | `serve`          | the world of plays with peers of the stage          |
//! | `talk`           | the world of plays with clients of the module       |
//! | `plays`          | the plays                                           |
//! | `planted`        | a failure, to be shrunk                             |

mod away;
mod callbacks;
mod closings;
mod faults;
mod file_laws;
mod files;
mod hostile;
mod hostile_client;
mod hostile_plays;
mod hostile_server;
mod illegal_calls;
mod long_calls;
mod more_plays;
mod nfsd;
pub(crate) mod outcome;
mod peer;
mod peer_calls;
mod peer_steps;
pub(crate) mod planted;
pub(crate) mod plays;
mod rpc;
mod serve;
mod silent_peers;
mod spare_pages;
mod stalled_reads;
mod suspended;
mod talk;
mod unanswered;
mod unload;
mod world;
