// SPDX-License-Identifier: GPL-2.0

//! The server's side of SUNRPC: `struct svc_xprt` and its requests.
//!
//! | file                | what                                                   | runs in             |
//! |---------------------|--------------------------------------------------------|---------------------|
//! | `types`             | the types that a connection defines                    |                     |
//! | `transport`         | what listeners and connections do for SUNRPC           | see `ops`           |
//! | `xprt_ref`          | an `svc_xprt`, and its flags                           | any context         |
//! | `svc_xprt`          | `svc_xprt` with its private part                       |                     |
//! | `handle`            | counted references to the memory of an `svc_xprt`      | any context         |
//! | `class`             | the registration of the class                          | module init         |
//! | `ops`               | the tables of operations, and their contexts           |                     |
//! | `accepting`         | creates the transport of a connection that arrived     | an nfsd thread      |
//! | `svc_rqst`          | `svc_rqst`: a request                                  | an nfsd thread      |
//! | `rqst_pages`        | its page slots: one of two variants                    | an nfsd thread      |
//! | `rqst`              | a request while a Call is received into it             | an nfsd thread      |
//! | `reply`             | a request whose Reply is to be sent                    | an nfsd thread      |
//! | `spare_pages`       | pages displaced from one request, for the next         | an nfsd thread      |
//! | `state_file`        | the file that shows the state of a connection          | a task that reads   |
//! | `show`              | shows a connection in that file                        | a task that reads   |
//! | `timer`             | wakes a thread for a transport after some time         | any context         |
//! | `backchannel`       | the transport of a connection's backchannel Calls      |                     |
//! | `backchannel_class` | its class, and its creation                            | workqueue of nfsd   |
//! | `backchannel_ops`   | its operations                                         | `rpciod`            |
//! | `backchannel_reply` | the Replies to backchannel Calls                       | an nfsd thread      |

mod accepting;
mod backchannel;
mod backchannel_class;
mod backchannel_ops;
mod backchannel_reply;
mod class;
mod handle;
mod ops;
mod reply;
mod rqst;
#[cfg(rpcrdma_has_rq_pages_nfree)]
mod rqst_pages;
#[cfg(not(rpcrdma_has_rq_pages_nfree))]
#[path = "rqst_pages_joint.rs"]
mod rqst_pages;
mod show;
mod spare_pages;
mod state_file;
mod svc_rqst;
mod svc_xprt;
mod timer;
mod transport;
mod types;
mod xprt_ref;

pub(crate) use super::error::SendError;
pub(crate) use accepting::Accepting;
pub(crate) use backchannel::BackchannelLimits;
pub(crate) use backchannel_class::BackchannelRegistration;
pub(crate) use backchannel_reply::{
    BackchannelAnswer,
    Grant, //
};
pub(crate) use class::ClassRegistration;
pub(crate) use handle::XprtHandle;
pub(crate) use reply::{
    Body,
    Located,
    Reply, //
};
pub(crate) use rqst::{
    Arriving,
    Received,
    Receiving, //
};
pub(crate) use spare_pages::SparePages;
pub(crate) use state_file::StateFile;
pub(crate) use svc_xprt::{
    NewXprt,
    SvcXprt, //
};
pub(crate) use timer::XprtTimer;
pub(crate) use transport::{
    Connection,
    Listener, //
};
pub(crate) use types::Types;
