// SPDX-License-Identifier: GPL-2.0

//! Short messages that do not wait for the right to send.
//!
//! The holder of the [`RequestSender`](super::sender::RequestSender) may sleep, so a completion
//! handler cannot wait for it. Handlers send messages from a pool that is allocated with the
//! connection and has reserved entries of the Send Queue. Each message is signaled, and is idle
//! again when it completes.

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
                SendWorker, //
                WcStatus,
            },
            ep::{
                Endpoint,
                HeldUntilDrained, //
            },
            send_wr::set_send, //
        }, //
    }, //
};

use super::sender::Requester;

/// A message.
///
/// # Invariants
///
/// `home` is kept by the endpoint that the message was made for, whose domain is the buffer's.
struct CtrlSend {
    cqe: bindings::ib_cqe,
    wr: bindings::ib_send_wr,
    sge: bindings::ib_sge,
    buffer: DmaBuffer,
    /// For traces.
    serial: i32,
    home: *const Home,
}

// SAFETY: It owns all that it points to, but for its home, which is `Sync`.
unsafe impl Send for CtrlSend {}

/// Where messages are while they are idle.
#[pin_data]
struct Home {
    #[pin]
    idle: Pool<LlistBox<CtrlSend>>,
}

impl HeldUntilDrained for Arc<Home> {}

/// The messages of one connection.
pub(crate) struct CtrlSendPool(Arc<Home>);

impl CtrlSendPool {
    /// Makes `count` messages of up to `bytes` bytes for an open endpoint, whose Send Queue has
    /// as many entries for them.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the endpoint is not open.
    pub(crate) fn new<C: Requester>(ep: &Endpoint<C>, count: u32, bytes: usize) -> Result<Self> {
        let pd = ep.pd().ok_or(EINVAL)?;
        let home = Arc::pin_init(pin_init!(Home { idle <- Pool::new() }), GFP_KERNEL)?;
        for _ in 0..count {
            // INVARIANT: Kept below, before anything is sent.
            home.idle
                .put(LlistBox::new_uninit(GFP_KERNEL)?.write(CtrlSend {
                    cqe: bindings::ib_cqe {
                        done: Some(sent::<C>),
                    },
                    wr: pin_init::zeroed(),
                    sge: pin_init::zeroed(),
                    buffer: DmaBuffer::new(pd, bytes, Direction::ToDevice, GFP_KERNEL)?,
                    serial: Cid::serial(),
                    home: &raw const *home,
                }));
        }
        // What is posted refers to it.
        ep.hold_until_drained(home.clone())?;
        Ok(Self(home))
    }

    /// Sends what `write` writes; it returns the length. The Send invalidates the peer's handle
    /// `invalidate`. `None` if there is no idle message, or nothing was written.
    ///
    /// # Errors
    ///
    /// `EINVAL` if these are the messages of another endpoint, or what the device reports; the
    /// connection has to be ended.
    pub(crate) fn send<C: Requester>(
        &self,
        ep: &Endpoint<C>,
        invalidate: Option<u32>,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<Option<()>> {
        let Some(mut ctrl_send) = self.0.idle.get() else {
            return Ok(None);
        };
        // Another endpoint may have another kind of context, and does not keep their home.
        if !ep.owns(ctrl_send.buffer.pd()) {
            self.0.idle.put(ctrl_send);
            return Err(EINVAL);
        }
        let Some(bytes) = write(ctrl_send.buffer.as_mut_slice()) else {
            self.0.idle.put(ctrl_send);
            return Ok(None);
        };
        let raw = ctrl_send.into_raw();
        // SAFETY: Given up just now, and to nobody yet.
        let inner = unsafe { &mut *raw };
        inner.buffer.sync_for_device(bytes);
        inner.sge = inner.buffer.sge(bytes);
        set_send(&mut inner.wr, invalidate);
        inner.wr.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
        inner.wr.sg_list = &raw mut inner.sge;
        inner.wr.num_sge = 1;
        // SAFETY: The member that the RDMA core looks at.
        unsafe { *inner.wr.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut inner.cqe };
        let request = &raw const inner.wr;
        // SAFETY: One work request; what it refers to stays until its completion gives it back, and
        // `sent` expects this endpoint's kind of context.
        match unsafe { ep.post_send_raw(request) } {
            Ok(()) => Ok(Some(())),
            Err((error, BadWr::Unknown)) => Err(error),
            Err((error, _)) => {
                // SAFETY: Not posted, so that `sent` does not come.
                self.0.idle.put(unsafe { LlistBox::from_raw(raw) });
                Err(error)
            }
        }
    }
}

/// The end of a message.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for an [`CtrlSend`] of that.
unsafe extern "C" fn sent<C: Requester>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: Every such Send has the `cqe` of its message; its completion comes once.
    let ctrl_send = unsafe { LlistBox::from_raw(kernel::container_of!(cqe, CtrlSend, cqe)) };
    // SAFETY: The endpoint keeps it, by the type's invariants.
    let home = unsafe { &*ctrl_send.home };
    trace!(xprtrdma_wc_send(
        worker.send_cid(ctrl_send.serial),
        wc.status,
        wc.vendor_err
    ));
    home.idle.put(ctrl_send);
    C::ctrl_sent(&worker, WcStatus::of(wc.status));
}
