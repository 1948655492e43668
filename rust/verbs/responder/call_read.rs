// SPDX-License-Identifier: GPL-2.0

//! Pulling a Call's chunks: RDMA Reads into pages that travel with the Call's Receive buffer.
//!
//! The buffer moves: `Recv` -> [`CallRead`], where Reads are added -> the device, by
//! [`CallRead::post`] -> [`CallReadDone`], given back by the completion -> `Recv` again, once the
//! pages are unmapped. The pages can be looked at before and after, never in between.

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    prelude::*,
    time::{
        Delta,
        Instant, //
    }, //
};

use crate::{
    bindings,
    lib::{
        displaced_pages::CtxtPages,
        llist::{
            Link,
            Linked, //
        },
        pages::{
            PageArray,
            PageSink,
            Span, //
        }, //
    },
    trace::{
        svcrdma_wc_read,
        trace, //
    },
    verbs::{
        device::dma_buf::Direction,
        endpoint::{
            bad_wr::BadWr,
            completion::{
                SendWorker, //
                WcStatus,
            },
            ep::Endpoint,
            ops::EndpointOps,
            recv_ctxt::RecvBuf,
            send_queue::{
                Permit, //
                PostError,
            }, //
        },
        rw::{
            rw_chain::RwChain,
            rw_ctxt::{
                DoneArg,
                Remote,
                RwCtxt, //
            }, //
        }, //
    }, //
};

use super::sender::{
    ReplySender, //
    Responder,
};

/// What travels with a responder's Receive buffers: pages to pull to, and the Call's own state.
///
/// # Invariants
///
/// `rw_chain` is empty unless the buffer is in a [`CallRead`] or a [`CallReadDone`], or posted by
/// one.
pub(crate) struct RecvCtxt<S> {
    pages: CtxtPages,
    rw_chain: RwChain,
    /// The state of the Call.
    pub(crate) call: S,
}

impl<S> RecvCtxt<S> {
    /// A parcel with room for `pages` pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(pages: usize, call: S) -> Result<Self> {
        // INVARIANT: There are no transfers.
        Ok(Self {
            pages: PageArray::with_capacity(pages)?.into(),
            rw_chain: RwChain::new(Direction::FromDevice),
            call,
        })
    }

    /// The pages.
    #[inline]
    pub(crate) fn pages_mut(&mut self) -> &mut CtxtPages {
        &mut self.pages
    }

    /// The state of the Call, and the pages.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut S, &mut CtxtPages) {
        (&mut self.call, &mut self.pages)
    }
}

/// A Receive buffer whose Call is being put together.
pub(crate) struct CallRead<S>(RecvBuf<RecvCtxt<S>>);

impl<S: Send + 'static> CallRead<S> {
    /// Starts with the pages that are in the parcel.
    #[inline]
    pub(crate) fn new(recv: RecvBuf<RecvCtxt<S>>) -> Self {
        Self(recv)
    }

    /// The first `bytes` of the Receive buffer, the state of the Call, and what is to be pulled.
    #[inline]
    pub(crate) fn parts(&mut self, bytes: usize) -> (&[u8], &mut S, Reads<'_>) {
        let (bytes, ctxt) = self.0.split(bytes);
        let reads = Reads {
            pages: ctxt.pages.own(),
            rw_chain: &mut ctxt.rw_chain,
        };
        (bytes, &mut ctxt.call, reads)
    }

    /// What names the Call in traces.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.0.serial()
    }

    /// Entries of the Send Queue that posting takes.
    #[inline]
    pub(crate) fn entries(&self) -> u32 {
        self.0.user().rw_chain.entries()
    }

    /// Posts the Reads; [`Responder::read_done`] follows.
    ///
    /// # Errors
    ///
    /// [`PostError`]; either way the connection is at its end.
    #[inline]
    pub(crate) fn post<C: Responder<Call = S>>(
        mut self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
    ) -> Result<(), PostError<Self>> {
        let (serial, context) = (self.0.serial(), self.0.as_raw());
        let entries = permit.entries();
        let arg = DoneArg {
            context,
            entries,
            posted: svcrdma_wc_read::enabled().then(Instant::now),
        };
        let rw_chain = &mut self.0.user_mut().rw_chain;
        rw_chain.set_done(done::<C>, arg);
        let enough = rw_chain.entries() <= entries;
        // SAFETY: Nothing follows the chain.
        let first = unsafe { rw_chain.link(ep, ptr::null_mut()) };
        let Some(first) = first.filter(|first| !first.is_null() && enough) else {
            return Err(PostError::NotPosted(self));
        };
        trace!(svcrdma_post_read_chunk(
            ep.send_cid(serial),
            entries.cast_signed()
        ));
        let context = self.0.into_raw();
        // SAFETY: The work requests and the pages belong to the Receive buffer, which nobody can
        // reach until `done` takes it back, or the code below.
        match unsafe { permit.post(ep, first) } {
            Ok(()) => Ok(()),
            Err((error, left)) => {
                let sender = ep.context().sender();
                sender.trace_refused(ep, serial, error);
                if left == BadWr::Unknown {
                    return Err(PostError::PartlyPosted);
                }
                // SAFETY: The last one is not posted, so that `done` does not come.
                let pull = Self(unsafe { RecvBuf::from_raw(context) });
                if left == BadWr::First {
                    return Err(PostError::NotPosted(pull));
                }
                sender.strand_read(CallReadDone(pull.0));
                Err(PostError::PartlyPosted)
            }
        }
    }

    /// Gives the buffer back, and whatever was added up.
    #[inline]
    pub(crate) fn abandon<C: Responder<Call = S>>(self, ep: &Endpoint<C>) -> RecvBuf<RecvCtxt<S>> {
        CallReadDone(self.0).finish(ep)
    }
}

/// The pages that a Call is pulled to, and the Reads that pull it.
pub(crate) struct Reads<'a> {
    pages: &'a mut PageArray,
    rw_chain: &'a mut RwChain,
}

impl Reads<'_> {
    /// Where pages are added.
    #[inline]
    pub(crate) fn page_sink(&mut self) -> PageSink<'_> {
        self.pages.sink()
    }

    /// Adds a Read of `sink.len` bytes from `from`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the sink is empty or not within the pages; `ENOMEM`, `EIO` if the device cannot
    /// map the pages.
    #[inline]
    pub(crate) fn add<C: Responder>(
        &mut self,
        ep: &Endpoint<C>,
        sink: Span,
        from: Remote,
    ) -> Result {
        let pool = ep.context().sender().rw_chain();
        // SAFETY: The pages stay in the parcel, which nobody can reach while it is in a `CallRead`,
        // until the transfers are released; the array only grows.
        unsafe { self.rw_chain.add(ep, pool, self.pages, sink, from) }
    }

    /// Copies `source` to where `to` is in the pages; `false` if it does not fit.
    pub(crate) fn write(&mut self, to: u32, source: &[u8]) -> bool {
        self.pages.write(to, source)
    }
}

/// A Receive buffer whose Reads have ended, well or not. The pages are still mapped.
pub(crate) struct CallReadDone<S>(RecvBuf<RecvCtxt<S>>);

impl<S: Send + 'static> CallReadDone<S> {
    /// Whether the Reads were this endpoint's.
    pub(in crate::verbs) fn is_of<C: EndpointOps>(&self, ep: &Endpoint<C>) -> bool {
        self.0.user().rw_chain.are_of(ep)
    }

    /// Unmaps the pages and gives the buffer back.
    #[inline]
    pub(crate) fn finish<C: Responder<Call = S>>(
        mut self,
        ep: &Endpoint<C>,
    ) -> RecvBuf<RecvCtxt<S>> {
        let pool = ep.context().sender().rw_chain();
        self.0.user_mut().rw_chain.release(ep, pool);
        self.0
    }
}

// SAFETY: As for the buffer inside.
unsafe impl<S: Send + 'static> Linked for CallReadDone<S> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        self.0.into_link()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { RecvBuf::from_link(link) })
    }
}

/// The end of a chain of Reads, in the send completion queue's worker.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a chain that
/// [`CallRead::post`] posted there.
unsafe extern "C" fn done<C: Responder>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: `post` has called `set_done` for the last Read, which is the one that is signalled.
    let arg = unsafe { RwCtxt::done_arg(cqe) };
    // SAFETY: Left there by `post`, for this.
    let recv: RecvBuf<RecvCtxt<C::Call>> = unsafe { RecvBuf::from_raw(arg.context) };
    let sender: &ReplySender<C::Call> = worker.context().sender();
    sender.queue().complete(arg.entries);
    let how = WcStatus::of(wc.status);
    match how {
        WcStatus::Success => trace!(svcrdma_wc_read(
            worker.send_cid(recv.serial()),
            recv.user().rw_chain.bytes(),
            arg.posted
                .map_or(Delta::ZERO, |at| at.elapsed())
                .as_micros_ceil()
        )),
        WcStatus::Flushed => trace!(svcrdma_wc_read_flush(
            worker.send_cid(recv.serial()),
            wc.status,
            wc.vendor_err
        )),
        WcStatus::Error(status) => trace!(svcrdma_wc_read_err(
            worker.send_cid(recv.serial()),
            status,
            wc.vendor_err
        )),
    }
    C::read_done(&worker, CallReadDone(recv), how);
}
