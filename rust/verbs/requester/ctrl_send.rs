// SPDX-License-Identifier: GPL-2.0

//! Preallocated Sends that need no send lock.
//!
//! The holder of the [`RequestSender`](super::sender::RequestSender) may sleep, so a completion
//! handler cannot wait for it. The messages of handlers, RDMA_ERROR and RDMA_DONE, are sent from
//! these contexts. They are allocated with the connection, and have Send Queue entries of their
//! own. Each is signalled, and idle again when it has completed.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::{
        llist_box::LlistBox,
        pool::Pool, //
    },
    trace::{
        trace,
        Cid, //
    },
    verbs::{
        device::dma_buf::{
            Direction,
            DmaBuffer, //
        },
        endpoint::{
            bad_wr::BadWr,
            completion::{
                handler,
                OnCompletion,
                SendCq,
                SendWorker,
                WcStatus, //
            },
            ep::{
                Endpoint,
                HeldUntilDrained, //
            },
            in_doubt::InDoubt,
            send_wr::{
                set_cqe,
                set_send, //
            }, //
        }, //
    }, //
};

use super::sender::Requester;

/// A control Send.
///
/// # Invariants
///
/// - I1: `pool` is held by the endpoint that the Send is for, whose domain is the buffer's, until
///   the queues are drained.
/// - I2: `wr` refers to `cqe` and `sge`.
struct CtrlSend {
    cqe: bindings::ib_cqe,
    wr: bindings::ib_send_wr,
    sge: bindings::ib_sge,
    buffer: DmaBuffer,
    /// The number in traces.
    serial: i32,
    pool: *const Idle,
}

// SAFETY: `wr` refers to parts of the same allocation, and `pool` to a type that is `Sync`.
unsafe impl Send for CtrlSend {}

/// Idle control Sends.
#[pin_data]
struct Idle {
    #[pin]
    sends: Pool<LlistBox<CtrlSend>>,
    /// The number of Sends, idle or not.
    count: usize,
    /// Sends that may have been posted.
    #[pin]
    in_doubt: InDoubt<CtrlSend>,
}

impl HeldUntilDrained for Arc<Idle> {
    /// Frees the Sends. All that were posted have completed, and are idle.
    unsafe fn queues_ended(&self) {
        let idle = core::iter::from_fn(|| self.sends.get()).count();
        if idle + self.in_doubt.len() != self.count {
            return;
        }
        while let Some(send) = self.in_doubt.take() {
            // SAFETY: `CtrlSendPool::send` gave it up. It is not idle, hence was not posted.
            drop(unsafe { LlistBox::from_raw(send.as_ptr()) });
        }
    }
}

/// The control Sends of one connection.
pub(crate) struct CtrlSendPool(Arc<Idle>);

/// Whether a control Send was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CtrlPost {
    /// It was posted.
    Posted,
    /// None was idle, or there was no message.
    NotPosted,
}

impl CtrlSendPool {
    /// Allocates `count` Sends of up to `len` bytes for an open endpoint, whose Send Queue has as
    /// many entries for them.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map the buffers, `EINVAL` if the endpoint is not open.
    pub(crate) fn new<C: Requester>(ep: &Endpoint<C>, count: u32, len: usize) -> Result<Self> {
        let pd = ep.pd().ok_or(EINVAL)?;
        let idle = Arc::pin_init(
            pin_init!(Idle {
                sends <- Pool::new(),
                count: count as usize,
                in_doubt <- InDoubt::new(),
            }),
            GFP_KERNEL,
        )?;
        for _ in 0..count {
            // INVARIANT: I1: held below, before anything is sent.
            let mut send = LlistBox::new_uninit(GFP_KERNEL)?.write(CtrlSend {
                cqe: bindings::ib_cqe {
                    done: Some(handler::<C, CtrlSend>()),
                },
                wr: pin_init::zeroed(),
                sge: pin_init::zeroed(),
                buffer: DmaBuffer::new(pd, len, Direction::ToDevice, GFP_KERNEL)?,
                serial: Cid::serial(),
                pool: &raw const *idle,
            });
            let this = &mut *send;
            // INVARIANT: I2: set here, and not changed.
            set_cqe(&mut this.wr, &raw mut this.cqe);
            this.wr.sg_list = &raw mut this.sge;
            this.wr.num_sge = 1;
            this.wr.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
            idle.sends.put(send);
        }
        // Posted work requests refer to the pool.
        ep.hold_until_drained(idle.clone())?;
        Ok(Self(idle))
    }

    /// Sends the message that `write` writes; it returns the length. The Send invalidates the
    /// peer's rkey `invalidate`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if these are another endpoint's, or the device's error. The connection has to be
    /// closed.
    pub(crate) fn send<C: Requester>(
        &self,
        ep: &Endpoint<C>,
        invalidate: Option<u32>,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<CtrlPost> {
        let Some(mut send) = self.0.sends.get() else {
            return Ok(CtrlPost::NotPosted);
        };
        // Another endpoint may have another kind of context, and does not hold this pool.
        if !ep.owns(send.buffer.pd()) {
            self.0.sends.put(send);
            return Err(EINVAL);
        }
        let Some(len) = write(send.buffer.as_mut_slice()) else {
            self.0.sends.put(send);
            return Ok(CtrlPost::NotPosted);
        };
        send.buffer.sync_for_device(len);
        send.sge = send.buffer.sge(len);
        set_send(&mut send.wr, invalidate);
        let raw = send.into_raw();
        // SAFETY: One work request, which refers to the context (I2). That was given up above: it
        // stays until `completed` takes it back, or the code below. Its handler expects this
        // endpoint's kind of context.
        match unsafe { ep.post_send_raw(&raw const (*raw).wr) } {
            Ok(()) => Ok(CtrlPost::Posted),
            Err((error, BadWr::Unknown)) => {
                if let Some(send) = NonNull::new(raw) {
                    self.0.in_doubt.add(send);
                }
                Err(error)
            }
            Err((error, _)) => {
                // SAFETY: Not posted, so that `completed` is not called.
                self.0.sends.put(unsafe { LlistBox::from_raw(raw) });
                Err(error)
            }
        }
    }
}

/// Handles the completion of a control Send that [`CtrlSendPool::send`] posted.
impl<C: Requester> OnCompletion<C> for CtrlSend {
    type Queue = SendCq;

    #[inline]
    unsafe fn completed(
        worker: &SendWorker<'_, C>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    ) {
        // SAFETY: The CQE is that of a Send that `send` gave up, and this completion comes once.
        let send = unsafe { LlistBox::from_raw(kernel::container_of!(cqe, Self, cqe)) };
        // SAFETY: Held until the queues are drained (I1).
        let idle = unsafe { &*send.pool };
        trace!(xprtrdma_wc_send(
            worker.send_cid(send.serial),
            wc.status,
            wc.vendor_err
        ));
        idle.sends.put(send);
        C::ctrl_sent(worker, WcStatus::of(wc.status));
    }
}
