// SPDX-License-Identifier: GPL-2.0

//! RDMA as types that cannot be misused: devices, queue pairs, buffers and memory regions.
//!
//! What is posted belongs to the device until its completion gives it back: a posted buffer cannot be
//! read, a mapped page cannot be freed, because nobody holds it. Whatever the device can reach keeps a
//! [`Domain`], and the device's removal waits for the last of them.

mod aside;
mod cm;
mod device;
mod dma;
mod domain;
mod endpoint;
mod exposed;
mod exposes;
mod fence;
mod linked_box;
mod list;
mod listener;
mod message;
mod patience;
mod pull;
mod puller;
mod queues;
mod recv;
mod refill;
mod region;
mod regions;
mod requester;
mod responder;
mod send_queue;
mod send_ring;
mod tags;
mod transfer;

pub(crate) use crate::bindings::addr::SockAddr;
pub(crate) use crate::bindings::pages::PageArray;
pub(crate) use crate::bindings::pages::Span;
pub(crate) use aside::Asides;
pub(crate) use cm::CmEvent;
pub(crate) use cm::ConnParam;
pub(crate) use cm::IncomingConnection;
pub(crate) use device::DeviceWatch;
pub(crate) use domain::DeviceAttrs;
pub(crate) use domain::Domain;
pub(crate) use endpoint::Context;
pub(crate) use endpoint::Drained;
pub(crate) use endpoint::Endpoint;
pub(crate) use endpoint::EndpointBox;
pub(crate) use endpoint::RecvWorker;
pub(crate) use endpoint::SendWorker;
pub(crate) use exposes::Exposes;
pub(crate) use fence::Fenced;
pub(crate) use fence::QueueEnded;
pub(crate) use list::Chain;
pub(crate) use list::Pool;
pub(crate) use list::Queue;
pub(crate) use list::Stack;
pub(crate) use listener::Accepts;
pub(crate) use listener::Listening;
pub(crate) use message::Message;
pub(crate) use message::NotPosted;
pub(crate) use message::Sent;
pub(crate) use pull::NotPulling;
pub(crate) use pull::Parcel;
pub(crate) use pull::Pull;
pub(crate) use pull::Pulled;
pub(crate) use pull::Reads;
pub(crate) use puller::NotPulled;
pub(crate) use puller::Puller;
pub(crate) use puller::Pulls;
pub(crate) use queues::QueueDepths;
pub(crate) use recv::Recv;
pub(crate) use recv::RecvBatch;
pub(crate) use recv::RecvStatus;
pub(crate) use refill::Refill;
pub(crate) use refill::Refilled;
pub(crate) use region::Access;
pub(crate) use region::Exposed;
pub(crate) use region::MapError;
pub(crate) use regions::Mapped;
pub(crate) use regions::Regions;
pub(crate) use regions::Registered;
pub(crate) use regions::Registrar;
pub(crate) use requester::Draft;
pub(crate) use requester::NoRoom as NoRoomInMessage;
pub(crate) use requester::Requester;
pub(crate) use requester::Sender;
pub(crate) use requester::SenderSizes;
pub(crate) use responder::Ended;
pub(crate) use responder::MessageSizes;
pub(crate) use responder::Responder;
pub(crate) use responder::Sending;
pub(crate) use send_queue::NoRoom;
pub(crate) use send_queue::Permit;
pub(crate) use transfer::Remote;
