// SPDX-License-Identifier: GPL-2.0

//! Receive buffers, and an endpoint that posts none.

use std::cell::Cell;
use std::marker::PhantomData;

use kernel::alloc::Flags;
use kernel::prelude::Error;
use kernel::prelude::Result;

use crate::lib::llist_box::LlistBox;
use crate::Payload;

thread_local! {
    /// The threads of a model are one thread of the host.
    static BUFFERS: Cell<usize> = const { Cell::new(0) };
}

/// How many Receive buffers there are.
pub(crate) fn buffers() -> usize {
    BUFFERS.get()
}

/// A domain, which its number stands for.
pub(crate) struct Domain(u64);

impl Domain {
    pub(crate) fn id(&self) -> u64 {
        self.0
    }
}

pub(crate) trait EndpointOps {
    type RecvData;
}

impl EndpointOps for () {
    type RecvData = ();
}

/// An end of a connection with a domain.
pub(crate) struct Endpoint<C>(Domain, PhantomData<C>);

impl<C: EndpointOps> Endpoint<C> {
    pub(crate) fn new(id: u64) -> Self {
        Self(Domain(id), PhantomData)
    }

    pub(crate) fn pd(&self) -> Option<&Domain> {
        Some(&self.0)
    }

    pub(crate) fn peer_addr(&self) {}

    pub(crate) fn recv_cq_id(&self) {}

    pub(crate) fn post_recv(
        &self,
        batch: RecvBatch<C::RecvData>,
    ) -> Result<(), (Error, RecvBatch<C::RecvData>)> {
        Err((Error::Invalid, batch))
    }
}

pub(crate) struct Buffer<U> {
    pd: u64,
    pub(crate) memory: Payload,
    _user: U,
}

impl<U> Drop for Buffer<U> {
    fn drop(&mut self) {
        BUFFERS.set(BUFFERS.get() - 1);
    }
}

/// A Receive buffer that loom watches.
pub(crate) type RecvBuf<U> = LlistBox<Buffer<U>>;

impl<U> LlistBox<Buffer<U>> {
    pub(crate) fn new(pd: &Domain, _: usize, user: U, flags: Flags) -> Result<Self> {
        BUFFERS.set(BUFFERS.get() + 1);
        Ok(Self::new_uninit(flags)?.write(Buffer {
            pd: pd.id(),
            memory: Payload::new(0),
            _user: user,
        }))
    }

    pub(crate) fn pd_id(&self) -> u64 {
        self.pd
    }
}

pub(crate) struct RecvBatch<U>(Vec<RecvBuf<U>>);

impl<U> RecvBatch<U> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn push(&mut self, buffer: RecvBuf<U>) {
        self.0.push(buffer);
    }

    pub(crate) fn pop(&mut self) -> Option<RecvBuf<U>> {
        self.0.pop()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
