// SPDX-License-Identifier: GPL-2.0

//! SUNRPC as safe types.
//!
//! `xprt` is the client's wing, and `svc` the server's. Neither imports the other. The other files
//! serve both.
//!
//! | file         | what                                                     | runs in            |
//! |--------------|----------------------------------------------------------|--------------------|
//! | `xprt`       | the client: `rpc_xprt` and its requests                  | see there          |
//! | `svc`        | the server: `svc_xprt` and its requests                  | see there          |
//! | `xdr`        | `xdr_buf`: a message in head, pages and tail             |                    |
//! | `xprt_ref`   | an `rpc_xprt`, and its locks                             | any context        |
//! | `xprt_base`  | creates and frees an `rpc_xprt`                          | `setup`, `destroy` |
//! | `send_lock`  | the send lock, while a task waits for its Reply          | a task             |
//! | `c_ref`      | references to structures of C                            | any context        |
//! | `addr`       | the address of an `rpc_xprt` as text                     |                    |
//! | `rpc_rqst`   | an `rpc_rqst` that stays in place                        | a task, CQ workers |
//! | `call_name`  | the name of an RPC, for log messages                     | any context        |
//! | `locked_rqst`| an `rpc_rqst` while a lock of its transport is held       | a task, CQ workers |
//! | `credits`    | credits of Calls whose RPC ended before the Reply        | CQ workers, a task |
//! | `error`      | why a Call was not sent                                  |                    |
//! | `class`      | what all transport classes have in common                | module init        |
//! | `module_ref` | references to the module, and the barrier in its exit    |                    |
//! | `time`       | jiffies                                                  | any context        |

mod addr;
mod c_ref;
mod call_name;
mod class;
mod credits;
mod error;
mod locked_rqst;
mod module_ref;
mod rpc_rqst;
mod send_lock;
pub(crate) mod svc;
mod time;
pub(crate) mod xdr;
pub(crate) mod xprt;
mod xprt_base;
mod xprt_ref;

pub(crate) use module_ref::ExitBarrier;
