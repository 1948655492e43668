// SPDX-License-Identifier: GPL-2.0

//! The client's side of SUNRPC: `struct rpc_xprt` and its requests.
//!
//! | file              | what                                               | runs in                 |
//! |-------------------|----------------------------------------------------|-------------------------|
//! | `types`           | the types that a transport defines                 |                         |
//! | `transport`       | what a transport does for SUNRPC                   | see `ops`               |
//! | `rpc_xprt`        | `rpc_xprt` with its private part; the send lock    |                         |
//! | `handle`          | counted references to the memory of an `rpc_xprt`  | any context             |
//! | `class`           | the class, and the creation of a transport         | `mount`, module init    |
//! | `ops`             | the table of operations, and their contexts        |                         |
//! | `request_ops`     | operations on a request                            | an RPC's task           |
//! | `connection_ops`  | operations on a connection                         | with the send lock      |
//! | `backchannel_ops` | operations for backchannel Calls                   | a task, callback thread |
//! | `connect_error`   | why a connection was not established               | the connect worker      |
//! | `status`          | the state of a transport, for its file             |                         |
//! | `state_file`      | the file that shows the state of a transport       | a task that reads it    |
//! | `backoff`         | the delay between attempts to connect              | with the send lock      |
//! | `slot`, `buffer`  | the slot of an RPC, and its memory                 | an RPC's task           |
//! | `slot_state`      | the state of an RPC, and who may access `Inflight` |                         |
//! | `call`            | a Call that is being sent                          | with the send lock      |
//! | `claim`           | how an RPC ends with a Reply                       | the CQ workers          |
//! | `refusal`         | how an RPC ends without a Reply                    | CQ workers, RPC's task  |
//! | `backchannel`     | backchannel Calls that the client receives         | the receive CQ worker   |
//! | `deferred_put`    | puts a last reference from a workqueue             | a system worker         |
//! | `reclaim`         | allocations on the memory reclaim path             |                         |

mod backchannel;
mod backchannel_ops;
mod backoff;
mod buffer;
mod call;
mod claim;
mod class;
mod connect_error;
mod connection_ops;
mod deferred_put;
mod handle;
mod last_answer;
mod ops;
mod reclaim;
mod refusal;
mod request_ops;
mod rpc_xprt;
mod slot;
mod slot_state;
mod state_file;
mod status;
mod transport;
mod types;

pub(crate) use super::{
    call_name::CallName,
    credits::Credits,
    error::SendError, //
};
pub(crate) use backchannel::{
    BackchannelPool,
    BackchannelReply, //
};
pub(crate) use call::{
    Call,
    Committed, //
};
pub(crate) use claim::{
    Abandoned,
    Claimed,
    Fencing,
    Scatter, //
};
pub(crate) use class::ClassRegistration;
pub(crate) use connect_error::ConnectError;
pub(crate) use handle::XprtHandle;
pub(crate) use reclaim::ReclaimScope;
pub(crate) use slot_state::Refusal;
pub(crate) use status::XprtStatus;
pub(crate) use transport::Transport;
pub(crate) use types::{
    Connection,
    Types, //
};
