// SPDX-License-Identifier: GPL-2.0

//! A `struct svc_rqst` whose Reply is to be sent.
//!
//! C: svc_rdma_sendto.c, svc_rdma_save_io_pages()

use core::{
    ptr::NonNull,
    slice, //
};

use kernel::prelude::*;

use crate::{
    bindings,
    lib::{
        bvec::PAGE,
        displaced_pages::CtxtPages,
        pages::{
            read_slots,
            PageSink,
            PageSlot,
            Span, //
        }, //
    },
    sunrpc::c_ref::read_once, //
};

use super::{
    spare_pages::SparePages,
    svc_rqst::SvcRqst, //
};

/// A request whose Reply is to be sent.
///
/// # Invariants
///
/// - I1: The Reply is in `rq_respages`. SUNRPC replaces pages that are taken from the slots before
///   `rq_next_page`.
pub(crate) struct Reply<'a>(SvcRqst<'a>);

/// Where the parts of a Reply are in its pages: head, pages and tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    parts: [Span; 3],
    /// Bytes of the pages in front that stay with the request.
    ahead: u32,
}

impl Body {
    /// The length of the Reply.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.parts
            .iter()
            .fold(0, |sum: u32, part| sum.saturating_add(part.len))
    }

    /// Where the `len` bytes of the Reply from `offset` on are, in order.
    #[inline]
    pub(crate) fn spans(&self, offset: u32, len: u32) -> Spans<'_> {
        Spans {
            parts: self.parts.iter(),
            skip: offset,
            left: len,
            ahead: self.ahead,
        }
    }

    /// Whether any of the `len` bytes from `offset` on are in the first page.
    #[inline]
    pub(crate) fn is_in_first(&self, offset: u32, len: u32) -> bool {
        self.spans(offset, len).any(|span| span.start < PAGE)
    }

    /// The end of the bytes in the first page.
    #[inline]
    fn end_in_first(&self) -> u32 {
        self.parts
            .iter()
            .filter(|part| part.start < PAGE)
            .fold(0, |most, part| {
                most.max(part.start.saturating_add(part.len))
            })
            .min(PAGE)
    }

    /// The same parts in the pages from the second one on. Spans in the first page get an offset
    /// that is not in any page.
    #[inline]
    fn without_first(self) -> Self {
        Self {
            ahead: PAGE,
            ..self
        }
    }
}

/// An iterator over the places of a range of a Reply.
pub(crate) struct Spans<'a> {
    parts: slice::Iter<'a, Span>,
    /// Bytes of the next parts in front of the range.
    skip: u32,
    /// Bytes that are left of the range.
    left: u32,
    /// That of the [`Body`].
    ahead: u32,
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        while self.left > 0 {
            let part = self.parts.next()?;
            if self.skip >= part.len {
                self.skip -= part.len;
                continue;
            }
            let span = part.part(self.skip, self.left);
            self.skip = 0;
            self.left -= span.len;
            return Some(Span {
                start: span.start.checked_sub(self.ahead).unwrap_or(u32::MAX),
                ..span
            });
        }
        None
    }
}

/// A Reply that was found in the pages of its request.
///
/// # Invariants
///
/// - I1: As I1 of [`Reply`].
/// - I2: `body` is in the first `count` slots of `rq_respages`, and `count` is not zero.
pub(crate) struct Located<'a> {
    rqst: SvcRqst<'a>,
    body: Body,
    count: usize,
}

impl<'a> Reply<'a> {
    /// # Safety
    ///
    /// I1 holds, and the request satisfies the invariants of `SvcRqst` for the lifetime.
    #[inline]
    pub(super) unsafe fn new(rqst: *mut bindings::svc_rqst) -> Self {
        // SAFETY: By this function's contract.
        // INVARIANT: I1: by this function's contract.
        Self(unsafe { SvcRqst::new(rqst) })
    }

    /// Whether GSS integrity or privacy covers the Reply. No part of it may then be reduced.
    #[inline]
    pub(crate) fn is_protected(&self) -> bool {
        match self.0.flavor() {
            bindings::rpc_auth_flavors_RPC_AUTH_GSS_KRB5
            | bindings::rpc_auth_flavors_RPC_AUTH_GSS_LKEY
            | bindings::rpc_auth_flavors_RPC_AUTH_GSS_SPKM => false,
            // Other pseudoflavors may protect the data.
            other => other >= bindings::rpc_auth_flavors_RPC_AUTH_MAXFLAVOR,
        }
    }

    /// Finds the Reply in the pages of its request.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a part of the Reply is not there.
    #[inline]
    pub(crate) fn locate(self) -> Result<Located<'a>> {
        let mut rqst = self.0;
        let (slots, reply) = (rqst.respages(), rqst.reply());
        let counted = next_page(&rqst, slots).min(slots.len());
        let pages = locate_pages(&rqst, slots)?;
        let end = pages.start.saturating_add(pages.len).div_ceil(PAGE) as usize;
        // Data that nfsd reads with direct I/O for NFSv4 begins at any offset of its first page,
        // and may take one page more than nfsd counts. The request has that page, too.
        let count = if end <= slots.len() {
            counted.max(end)
        } else {
            counted
        };
        let slots = slots.get(..count).unwrap_or(slots);
        let head = locate(&reply.head[0], slots)?;
        let tail = locate(&reply.tail[0], slots)?;
        if count == 0 {
            return Err(EINVAL);
        }
        if count > counted {
            // SUNRPC replaces the pages that are gone before `rq_next_page`.
            rqst.set_next_page(count);
        }
        // INVARIANT: I1: by I1 of `self`. I2: all parts were found in the first `count` slots.
        Ok(Located {
            rqst,
            body: Body {
                parts: [head, pages, tail],
                ahead: 0,
            },
            count,
        })
    }
}

/// The index of `rq_next_page` in `slots`, those for Reply pages.
#[inline]
fn next_page(rqst: &SvcRqst<'_>, slots: &[PageSlot]) -> usize {
    let next = read_once!(rqst.0, rq_next_page);
    let bytes = next.addr().wrapping_sub(slots.as_ptr().addr());
    bytes / size_of::<PageSlot>()
}

impl Located<'_> {
    /// Where the parts of the Reply are.
    #[inline]
    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// The number of pages.
    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.count
    }

    /// The slots with the Reply.
    #[inline]
    fn slots(&self) -> &[PageSlot] {
        // By I2 there are `count` slots.
        self.rqst.respages().get(..self.count).unwrap_or(&[])
    }

    /// The slots with the Reply.
    #[inline]
    fn slots_mut(&mut self) -> &mut [PageSlot] {
        let count = self.count;
        // By I2 there are `count` slots.
        self.rqst.respages_mut().get_mut(..count).unwrap_or(&mut [])
    }

    /// Copies the `len` bytes of the Reply from `offset` on to the start of `target`; `false` if
    /// either is too short.
    #[inline]
    pub(crate) fn read(&self, offset: u32, len: u32, target: &mut [u8]) -> bool {
        let [head, ..] = self.body.parts;
        // The bytes that are not in a Write chunk are usually in the head.
        if offset.checked_add(len).is_some_and(|end| end <= head.len) {
            read_slots(self.slots(), head.part(offset, len), target)
        } else {
            read_parts(self.slots(), self.body, offset, len, target)
        }
    }

    /// Moves the pages of the Reply to `pages`, which is empty. Returns where the parts are in it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a page is missing, or `pages` has too little room.
    #[inline]
    pub(crate) fn move_into(mut self, mut pages: PageSink<'_>) -> Result<Body> {
        // By I1 SUNRPC fills the empty slots.
        let taken = pages.take(self.slots_mut());
        if taken == self.count {
            self.rqst.end_reply(taken);
            Ok(self.body)
        } else {
            self.rqst.release_reply(self.count);
            Err(EINVAL)
        }
    }

    /// As [`Self::move_into`], but the request keeps its first page for another Reply, and the
    /// other slots are filled with displaced pages, and from `spare`, as far as possible. Also
    /// returns whether a page was displaced.
    ///
    /// Pages from the second one on may be those of a file, which nfsd stores in the slots. The
    /// first one is always the request's own. [Noted](super::Receiving::note_reply_pages) pages
    /// that a file's page has displaced fill the slots again, and the rest of the displaced pages
    /// goes to `spare`: no Reply was written to them.
    ///
    /// # Errors
    ///
    /// As for [`Self::move_into`].
    #[inline]
    pub(crate) fn move_rest_into(
        mut self,
        mut pages: PageSink<'_>,
        noted: &mut CtxtPages,
        spare: &SparePages,
    ) -> Result<(Body, bool)> {
        if self.rqst.was_deferred() || self.rqst.has_moved_reply() {
            // A deferred Call is received a second time. The pages were noted the first time,
            // perhaps in another request. They are also useless if the Call took some of them.
            noted.release();
        }
        let body = self.body;
        let slots = self.slots_mut();
        let Some((first, rest)) = slots.split_first_mut() else {
            return Err(EINVAL);
        };
        // SAFETY: The slots from the second one on are those that were noted, since the Call was
        // not deferred and the slots have not moved. nfsd displaces pages by
        // `svc_rqst_replace_page()` alone, which moves their references to `rq_fbatch`: SUNRPC puts
        // these, and does not access the pages.
        let displaced = unsafe { noted.displaced(rest) };
        let any = displaced.len() > 0;
        let Some(bytes) = first.address() else {
            self.rqst.release_reply(self.count);
            return Err(EINVAL);
        };
        // By I1 SUNRPC fills the empty slots.
        if pages.take(rest) != rest.len() {
            self.rqst.release_reply(self.count);
            return Err(EINVAL);
        }
        // The next Reply may be that of another client. This code does not know which bytes were
        // encoded behind this Reply and taken back. They stay, as in SUNRPC's other pages.
        // SAFETY: The first page is the request's own, since SUNRPC encodes at its address. What
        // is sent of it has been copied, so the device does not read it.
        unsafe {
            bytes
                .cast::<u8>()
                .write_bytes(0, body.end_in_first() as usize)
        };
        // The kept page moves from the first slot to the last one, which is empty, as are those
        // between them.
        let count = rest.len();
        slots.swap(0, count);
        let empty = slots.get_mut(..count).unwrap_or_default();
        // Usually as many pages were displaced as were sent.
        let left = displaced.fill_from_end(empty);
        let left = spare.fill(empty.get_mut(..left).unwrap_or_default());
        spare.store(displaced);
        self.rqst.keep_reply_from(left);
        Ok((body.without_first(), any))
    }
}

/// Copies the `len` bytes from `offset` on of `body`, which is in the pages of `slots`, to the
/// start of `target`; `false` if either is too short.
#[inline(never)]
fn read_parts(
    slots: &[PageSlot],
    body: Body,
    offset: u32,
    len: u32,
    mut target: &mut [u8],
) -> bool {
    let mut left = len;
    for span in body.spans(offset, len) {
        if !read_slots(slots, span, target) {
            return false;
        }
        target = target.get_mut(span.len as usize..).unwrap_or_default();
        left -= span.len;
    }
    left == 0
}

/// Where the page part of the Reply is in `slots`. The caller checks that it ends in them.
#[inline]
fn locate_pages(rqst: &SvcRqst<'_>, slots: &[PageSlot]) -> Result<Span> {
    let reply = rqst.reply();
    let (first, base, len) = (reply.pages, reply.page_base, reply.page_len);
    if len == 0 {
        return Ok(Span::default());
    }
    let ahead = first.addr().wrapping_sub(slots.as_ptr().addr()) / size_of::<PageSlot>();
    let index = if ahead < slots.len() {
        ahead
    } else if base.saturating_add(len) <= PAGE {
        // The page list of a READLINK of NFSv2 is one entry elsewhere.
        // SAFETY: A message with bytes in its pages has an entry.
        let page = NonNull::new(unsafe { *first });
        let is_in = |slot: &PageSlot| slot.page() == page;
        slots.iter().position(is_in).ok_or(EINVAL)?
    } else {
        return Err(EINVAL);
    };
    let index = u32::try_from(index)?;
    let start = index.checked_mul(PAGE).and_then(|at| at.checked_add(base));
    Ok(Span {
        start: start.ok_or(EINVAL)?,
        len,
    })
}

/// Where a linear part of the Reply is in `slots`.
#[inline]
fn locate(part: &bindings::kvec, slots: &[PageSlot]) -> Result<Span> {
    if part.iov_len == 0 {
        return Ok(Span::default());
    }
    let start = match slots.first().and_then(|first| offset_in(first, part)) {
        Some(offset) => offset,
        None => locate_in_any(slots, part).ok_or(EINVAL)?,
    };
    Ok(Span {
        start,
        len: u32::try_from(part.iov_len)?,
    })
}

/// Where a part begins in the pages of `slots`, up to the first slot that is empty.
#[cold]
#[inline(never)]
fn locate_in_any(slots: &[PageSlot], part: &bindings::kvec) -> Option<u32> {
    for (i, slot) in slots.iter().enumerate() {
        slot.page()?;
        if let Some(offset) = offset_in(slot, part) {
            // CAST: There are fewer pages than 2^20.
            return Some((i as u32).saturating_mul(PAGE).saturating_add(offset));
        }
    }
    None
}

/// The offset of the part in the page of `slot`, if the part begins there.
#[inline]
fn offset_in(slot: &PageSlot, part: &bindings::kvec) -> Option<u32> {
    let offset = part.iov_base.addr().wrapping_sub(slot.address()?.addr());
    // CAST: Within a page.
    (offset < PAGE as usize).then_some(offset as u32)
}
