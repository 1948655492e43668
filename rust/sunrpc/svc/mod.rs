// SPDX-License-Identifier: GPL-2.0

//! The server's side of SUNRPC: transports that service threads receive from and reply on.
//!
//! | file | what it does |
//! | --- | --- |
//! | `transport` | what listeners and connections are to do |
//! | `types` | the types that a connection brings along |
//! | `accepting` | making the transport of a connection that comes in |
//! | `class` | the class that SUNRPC makes them with |
//! | `ops` | the tables of operations, and where they run |
//! | `svc_xprt` | `svc_xprt` with what belongs to it |
//! | `handle` | counted references to it, for what outlives SUNRPC's calls |
//! | `rqst` | requests that are received |
//! | `reply` | requests whose Reply is sent |
//! | `spare_pages` | pages that requests lack, and others had too many of |
//! | `timer` | has a thread look at a transport after a while |
//! | `backchannel` | the transport of a connection's reverse Calls |
//! | `backchannel_class`, `backchannel_ops` | its class, and its operations |
//! | `backchannel_reply` | what clients say to reverse Calls |

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
mod spare_pages;
mod svc_xprt;
mod timer;
mod transport;
mod types;

pub(crate) use super::error::SendError;
pub(crate) use accepting::Accepting;
pub(crate) use backchannel::BackchannelLimits;
pub(crate) use backchannel_class::BackchannelRegistration;
pub(crate) use backchannel_reply::Answer;
pub(crate) use class::Registration;
pub(crate) use handle::SvcHandle;
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
