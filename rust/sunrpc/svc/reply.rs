// SPDX-License-Identifier: GPL-2.0

//! [`Reply`]: a `struct svc_rqst` whose Reply is to be sent.

use core::{
    marker::PhantomData,
    ptr,
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
            Span, //
        }, //
    }, //
};

use super::spare_pages::SparePages;

/// A request whose Reply is to be sent.
///
/// # Invariants
///
/// The request is this thread's; its Reply lies in its `rq_respages`, of which it may give pages
/// away if they are before `rq_next_page` then.
pub(crate) struct Reply<'a> {
    rqst: *mut bindings::svc_rqst,
    _rqst: PhantomData<&'a mut bindings::svc_rqst>,
}

/// Where a Reply lies in the pages of its request, or in those that were moved out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    parts: [Span; 3],
}

impl Body {
    /// Bytes in all.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.parts
            .iter()
            .fold(0, |sum: u32, part| sum.saturating_add(part.len))
    }

    /// Where the `len` bytes from `offset` on lie, in order.
    #[inline]
    pub(crate) fn spans(&self, offset: u32, len: u32) -> impl Iterator<Item = Span> + use<> {
        let (mut skip, mut left) = (offset, len);
        self.parts.into_iter().filter_map(move |part| {
            let span = part.part(skip, left);
            skip = skip.saturating_sub(part.len);
            left -= span.len;
            (span.len > 0).then_some(span)
        })
    }

    /// Whether any of the `len` bytes from `offset` on lie in the first page.
    #[inline]
    pub(crate) fn is_in_first(&self, offset: u32, len: u32) -> bool {
        self.spans(offset, len).any(|span| span.start < PAGE)
    }

    /// Up to where the first page was used.
    #[inline]
    fn used_of_first(&self) -> u32 {
        self.parts
            .iter()
            .filter(|part| part.start < PAGE)
            .fold(0, |most, part| {
                most.max(part.start.saturating_add(part.len))
            })
            .min(PAGE)
    }

    /// The same, counted from the second page on. What lies in the first one is nowhere then.
    #[inline]
    fn without_first(self) -> Self {
        Self {
            parts: self.parts.map(|part| Span {
                start: part.start.checked_sub(PAGE).unwrap_or(u32::MAX),
                ..part
            }),
        }
    }
}

/// A Reply that has been found in the pages of its request.
///
/// # Invariants
///
/// As for [`Reply`]; the request has `count` slots, at least one, with the pages of `body`.
pub(crate) struct Located<'a> {
    rqst: *mut bindings::svc_rqst,
    body: Body,
    count: usize,
    _rqst: PhantomData<&'a mut bindings::svc_rqst>,
}

impl<'a> Reply<'a> {
    /// # Safety
    ///
    /// The type's invariants hold for the lifetime.
    #[inline]
    pub(super) unsafe fn new(rqst: *mut bindings::svc_rqst) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            rqst,
            _rqst: PhantomData,
        }
    }

    /// Whether GSS protects the Reply's integrity or privacy, so that it has to arrive in one
    /// piece.
    #[inline]
    pub(crate) fn is_protected(&self) -> bool {
        // SAFETY: The request is ours.
        let flavor = unsafe { (*self.rqst).rq_cred.cr_flavor };
        match flavor {
            bindings::rpc_auth_flavors_RPC_AUTH_GSS_KRB5
            | bindings::rpc_auth_flavors_RPC_AUTH_GSS_LKEY
            | bindings::rpc_auth_flavors_RPC_AUTH_GSS_SPKM => false,
            // Pseudoflavors: what is not known to authenticate only may do more.
            other => other >= bindings::rpc_auth_flavors_RPC_AUTH_MAXFLAVOR,
        }
    }

    /// Finds the Reply in the pages of its request.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not where it should be.
    #[inline]
    pub(crate) fn locate(self) -> Result<Located<'a>> {
        let rqst = self.rqst;
        // SAFETY: The request is ours. All pointers are compared, not followed, until they are
        // known to be within the slots.
        unsafe {
            let slots = (*rqst).rq_respages;
            let used = (*rqst).rq_next_page.addr().wrapping_sub(slots.addr());
            let mut count = (used / size_of::<*mut bindings::page>()).min((*rqst).rq_maxpages);
            let res = &raw const (*rqst).rq_res;
            let pages_of = page_list(res, slots, (*rqst).rq_maxpages)?;
            let touched = pages_of.start.saturating_add(pages_of.len).div_ceil(PAGE) as usize;
            if touched > count && touched <= (*rqst).rq_maxpages {
                // What NFSD reads past its cache for NFSv4 begins anywhere in its first page, and
                // may end in one more than NFSD counts. That one is the request's as well, and
                // SUNRPC replaces what is gone before `rq_next_page`.
                count = touched;
                (*rqst).rq_next_page = slots.add(count);
            }
            let body = Body {
                parts: [
                    locate(&(*res).head[0], slots, count)?,
                    pages_of,
                    locate(&(*res).tail[0], slots, count)?,
                ],
            };
            if count == 0 {
                return Err(EINVAL);
            }
            // INVARIANT: There are so many slots, and all of `body` was found in them.
            Ok(Located {
                rqst,
                body,
                count,
                _rqst: PhantomData,
            })
        }
    }
}

impl Located<'_> {
    /// Where it lies.
    #[inline]
    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// Copies `span` to the front of `target`; `false` if either is too short.
    #[inline]
    pub(crate) fn read(&self, span: Span, target: &mut [u8]) -> bool {
        // SAFETY: The request is ours, and has so many slots, by the type's invariants; so are the
        // pages in them.
        unsafe {
            let slots = slice::from_raw_parts((*self.rqst).rq_respages, self.count);
            read_slots(slots, span, target)
        }
    }

    /// Moves the pages of the Reply into `pages`, which is empty, and tells where it lies in them.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request lacks a page, or there is no room for all of them.
    #[inline]
    pub(crate) fn move_into(self, mut pages: PageSink<'_>) -> Result<Body> {
        // SAFETY: The request is ours, and so are the pages, by the type's invariants.
        let taken = unsafe { pages.take((*self.rqst).rq_respages, self.count) };
        if taken == self.count {
            Ok(self.body)
        } else {
            Err(EINVAL)
        }
    }

    /// As [`Self::move_into`], but the request keeps its first page for another Reply, and `spare`
    /// has the others replaced as far as it can.
    ///
    /// Pages from the second on may be a file's: NFSD puts them into the slots. The first is always
    /// the request's own. What a file's pages have displaced, of those that were
    /// [noted](super::Receiving::note_reply_pages), goes to `spare`: no part of a Reply is there.
    /// Tells also whether there were any.
    #[inline]
    pub(crate) fn move_rest_into(
        self,
        mut pages: PageSink<'_>,
        noted: &mut CtxtPages,
        spare: &SparePages,
    ) -> Result<(Body, bool)> {
        let rest = self.count - 1;
        // SAFETY: The request is ours.
        let (slots, deferred) = unsafe { ((*self.rqst).rq_respages, (*self.rqst).rq_deferred) };
        if !deferred.is_null() {
            // What was noted when the Call came is of another turn, or of another request.
            noted.release();
        }
        // SAFETY: There are `count` slots. Those from the second on are what was noted in this
        // turn; NFSD replaces what is in them, SUNRPC puts that, and nothing was moved since.
        let displaced = unsafe { noted.displaced(slots.add(1), rest) };
        let any = displaced.len() > 0;
        // SAFETY: There are `count` slots, and their pages are ours, by the type's invariants.
        let taken = unsafe {
            if (*slots).is_null() {
                return Err(EINVAL);
            }
            pages.take(slots.add(1), rest)
        };
        if taken != rest {
            return Err(EINVAL);
        }
        // SAFETY: The first slot has a page, which is the request's own: SUNRPC encodes at its
        // address. What was to be sent of it has been copied, so the device does not read it. All
        // slots up to the last of `count` are empty now.
        unsafe {
            let first = ptr::replace(slots, ptr::null_mut());
            // The next Reply may be another client's. What was encoded behind this one and taken
            // back is not known here: it stays, as it does in SUNRPC's other pages.
            let bytes = bindings::rpcrdma_page_address(first).cast::<u8>();
            bytes.write_bytes(0, self.body.used_of_first() as usize);
            slots.add(rest).write(first);
        }
        spare.keep(displaced);
        // SAFETY: The first `rest` slots are empty. SUNRPC releases what it finds before
        // `rq_next_page`, and fills just those slots again: what stays is where that points now,
        // and behind.
        unsafe { (*self.rqst).rq_next_page = slots.add(spare.fill(slots, rest)) };
        Ok((self.body.without_first(), any))
    }
}

/// Where the pages of `res` lie in the `count` `slots`. Whoever uses it finds out what is
/// past their end.
///
/// # Safety
///
/// `res` points to a valid `xdr_buf`, and there are as many slots.
#[inline]
unsafe fn page_list(
    res: *const bindings::xdr_buf,
    slots: *mut *mut bindings::page,
    count: usize,
) -> Result<Span> {
    // SAFETY: By this function's contract.
    let (first, base, len) = unsafe { ((*res).pages, (*res).page_base, (*res).page_len) };
    if len == 0 {
        return Ok(Span::default());
    }
    let ahead = first.addr().wrapping_sub(slots.addr()) / size_of::<*mut bindings::page>();
    let index = if ahead < count {
        ahead
    } else if base.saturating_add(len) <= PAGE {
        // A READLINK of NFSv2 names its one page in a place of its own.
        // SAFETY: `res` has a page.
        let page = unsafe { *first };
        // SAFETY: There are as many slots.
        let same = |slot: &usize| unsafe { *slots.add(*slot) == page };
        (0..count).find(same).ok_or(EINVAL)?
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

/// Where a linear part of a Reply lies in the pages of `slots`.
///
/// # Safety
///
/// There are `count` slots, each of them null or a page.
#[inline]
unsafe fn locate(
    part: &bindings::kvec,
    slots: *mut *mut bindings::page,
    count: usize,
) -> Result<Span> {
    if part.iov_len == 0 {
        return Ok(Span::default());
    }
    // The first page nearly always.
    for i in 0..count {
        // SAFETY: By this function's contract.
        let page = unsafe { *slots.add(i) };
        if page.is_null() {
            break;
        }
        // SAFETY: The slot has a page.
        let address = unsafe { bindings::rpcrdma_page_address(page) }.addr();
        let offset = part.iov_base.addr().wrapping_sub(address);
        if offset < PAGE as usize {
            return Ok(Span {
                // CAST: There are fewer pages than 2^20, and the offset is within one.
                start: (i as u32).saturating_mul(PAGE) + offset as u32,
                len: u32::try_from(part.iov_len)?,
            });
        }
    }
    Err(EINVAL)
}
