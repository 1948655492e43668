// SPDX-License-Identifier: GPL-2.0

//! The server's side of SUNRPC: transports that service threads receive from and reply on.
//!
//! | file | what it does |
//! | --- | --- |
//! | `transport` | what listeners and connections are to do |
//! | `class` | the class that SUNRPC makes them with |
//! | `ops` | the tables of operations, and where they run |
//! | `xprt` | `svc_xprt` with what belongs to it |
//! | `handle` | counted references to it, for what outlives SUNRPC's calls |
//! | `rqst` | requests that are received |
//! | `reply` | requests whose Reply is sent |
//! | `spare_pages` | pages that requests lack, and others had too many of |
//! | `timer` | has a thread look at a transport after a while |
//! | `backchannel`, `backchannel_class` | the transports of reverse Calls, and their class |
//! | `answer` | what clients say to reverse Calls |

mod backchannel;
mod backchannel_class;
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

pub(crate) use super::error::SendError;
pub(crate) use backchannel::BackchannelLimits;
pub(crate) use backchannel_class::BackchannelRegistration;
pub(crate) use backchannel_reply::Answer;
pub(crate) use class::{
    Accepting,
    Registration, //
};
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
