// SPDX-License-Identifier: GPL-2.0

//! RDMA as types that cannot be misused: devices, queue pairs, buffers and memory regions.
//!
//! What is posted belongs to the device until its completion gives it back: a posted buffer cannot
//! be read, a mapped page cannot be freed, because nobody holds it. Whatever the device can reach
//! keeps a [`Domain`](domain::Domain), and the device's removal waits for the last of them.
//!
//! | file                               | what                                                 |
//! |------------------------------------|------------------------------------------------------|
//! | `endpoint`                         | one end of a connection: identifier, queues, context |
//! | `events`                           | what is reported to it, on its way to the context    |
//! | `cm`                               | what the connection manager reports and is told      |
//! | `listener`                         | listening, also when the address moves               |
//! | `device`, `domain`                 | leases on devices, protection domains                |
//! | `queues`                           | a queue pair and its completion queues               |
//! | `completion`                       | the workers of completion queues, and how work ended |
//! | `dma`                              | buffers that stay mapped                             |
//! | `recv`                             | Receive buffers, and posting them                    |
//! | `requester`, `send_ring`           | the sending side of a client                         |
//! | `responder`, `send_queue`          | the sending side of a server                         |
//! | `message`, `message_post`          | a server's messages                                  |
//! | `aside`                            | short messages that completion handlers send         |
//! | `transfer`, `pull`, `puller`       | RDMA Read and Write, for a Call, for a Reply         |
//! | `region`, `regions`, `region_pool` | memory regions and their states                      |
//! | `refill`, `handles`                | more regions; for which Call a handle was given out  |
//! | `expose`, `fence`                  | exposing memory, and the proof that it is over       |
//! | `list`, `linked_box`, `patience`   | tools: lists, boxes for them, asking for memory      |

mod aside;
mod cm;
mod completion;
mod device;
mod dma;
mod domain;
mod endpoint;
mod events;
mod expose;
mod fence;
mod handles;
mod linked_box;
mod list;
mod listener;
mod message;
mod message_post;
mod patience;
mod pull;
mod puller;
mod queues;
mod recv;
mod refill;
mod region;
mod region_pool;
mod regions;
mod requester;
mod responder;
mod send_queue;
mod send_ring;
mod transfer;

pub(crate) use crate::bindings::addr::SockAddr;
pub(crate) use crate::bindings::pages::PageArray;
pub(crate) use crate::bindings::pages::Span;
pub(crate) use aside::Asides;
pub(crate) use cm::CmEvent;
pub(crate) use cm::ConnParam;
pub(crate) use cm::IncomingConnection;
pub(crate) use completion::Ended;
pub(crate) use completion::RecvWorker;
pub(crate) use completion::SendWorker;
pub(crate) use device::DeviceWatch;
pub(crate) use domain::DeviceAttrs;
pub(crate) use endpoint::Context;
pub(crate) use endpoint::Drained;
pub(crate) use endpoint::Endpoint;
pub(crate) use endpoint::EndpointBox;
pub(crate) use expose::Exposes;
pub(crate) use fence::Fenced;
pub(crate) use fence::QueueEnded;
pub(crate) use list::Chain;
pub(crate) use list::Pool;
pub(crate) use list::Queue;
pub(crate) use list::Stack;
pub(crate) use listener::Accepts;
pub(crate) use listener::Listening;
pub(crate) use message::Message;
pub(crate) use message::Sent;
pub(crate) use message_post::NotPosted;
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
pub(crate) use responder::MessageSizes;
pub(crate) use responder::Responder;
pub(crate) use responder::Sending;
pub(crate) use send_queue::NoRoom;
pub(crate) use send_queue::Permit;
pub(crate) use transfer::Remote;
