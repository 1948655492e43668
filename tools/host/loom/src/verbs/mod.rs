// SPDX-License-Identifier: GPL-2.0

//! `rust/verbs`, and what the models need of the files that they leave out.

mod device;
pub(crate) mod endpoint;
mod mr;
pub(crate) mod receiver;
mod requester;

use std::marker::PhantomData;
use std::ptr;

pub(crate) use endpoint::send_queue::Permit;
pub(crate) use endpoint::send_queue::SendQueue;
pub(crate) use receiver::Endpoint;
pub(crate) use receiver::EndpointOps;
pub(crate) use receiver::RecvBatch;
pub(crate) use receiver::RecvBuf;

/// Posts a chain of as many work requests as the permit is for. Returns how many.
pub(crate) fn post(permit: Permit<'_>, queue: &SendQueue) -> u32 {
    let entries = permit.entries();
    let ep = endpoint::ep::Endpoint::<()>(PhantomData);
    // SAFETY: There is no device.
    assert!(unsafe { permit.post(&ep, queue, ptr::null()) }.is_ok());
    entries
}

/// Completes a chain of so many work requests, in the worker of the send CQ.
pub(crate) fn complete(queue: &SendQueue, entries: u32) {
    queue.complete(entries);
}

/// A message, which its number stands for.
#[derive(Debug)]
pub(crate) struct SendCtxt(pub(crate) i32);

impl SendCtxt {
    pub(crate) fn serial(&self) -> i32 {
        self.0
    }
}

/// The RDMA Reads of a Call.
pub(crate) struct CallRead<U>(PhantomData<U>);

impl<U> CallRead<U> {
    pub(crate) fn serial(&self) -> i32 {
        unreachable!("no model reads a Call")
    }
}
