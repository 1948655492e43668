// SPDX-License-Identifier: GPL-2.0

//! Which Call a region's handle was given out for.
//!
//! A peer may invalidate a handle of a Call that nobody waits for any more: its Reply was on its
//! way when the RPC was given up. That costs nothing, as the handle is gone or about to be. One
//! that was never given out for that Call is another matter: some other RPC may have lost its
//! memory.

use kernel::{
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    },
    types::Opaque, //
};

use super::{
    frwr::Mr,
    mr_list::{
        MrList,
        Registered, //
    },
    mr_pool::MrPool, //
};

/// The Call that a region was last registered for, and the handle that it had then.
///
/// Read by the receiving side while the sending side may be mapping the region anew; hence
/// `Opaque`, which says that a reference to the region is not the only way here.
pub(in crate::verbs) struct RkeyOwner(Opaque<u64>);

impl RkeyOwner {
    /// For nothing yet: no handle is zero.
    pub(in crate::verbs) fn never() -> Self {
        Self(Opaque::new(0))
    }

    #[inline]
    fn word(&self) -> &Atomic<u64> {
        // SAFETY: Initialised, and aligned for `u64`: `Opaque` is `repr(transparent)`. Accesses
        // are all atomic, since everybody comes this way. A `&mut Mr` at the sender does not
        // assert that nobody else does: `Opaque` is an `UnsafeCell`, and not `Unpin`.
        unsafe { Atomic::from_ptr(self.0.get()) }
    }

    /// Notes that `handle` is given out for the Call `xid`.
    #[inline]
    pub(in crate::verbs) fn note(&self, xid: u32, handle: u32) {
        self.word().store(pair(xid, handle), Relaxed);
    }

    #[inline]
    fn is(&self, xid: u32, handle: u32) -> bool {
        self.word().load(Relaxed) == pair(xid, handle)
    }
}

#[inline]
fn pair(xid: u32, handle: u32) -> u64 {
    u64::from(xid) << 32 | u64::from(handle)
}

impl<U> MrList<Registered, U> {
    /// Notes that the regions are exposed for the Call `xid`.
    #[inline]
    pub(in crate::verbs) fn given_out_for(&self, xid: u32) {
        // SAFETY: In the list.
        for mr in unsafe { Mr::chain_from(self.head) } {
            // SAFETY: As above.
            let mr = unsafe { mr.as_ref() };
            mr.rkey_owner.note(xid, mr.handle());
        }
    }
}

impl<U: Send + 'static> MrPool<U> {
    /// Whether `handle` was given out for the Call `xid`, and for no other since.
    #[cold]
    pub(crate) fn gave_out(&self, xid: u32, handle: u32) -> bool {
        // SAFETY: Nothing is taken out of the list of all before the pool ends.
        let mut links = unsafe { self.all.links() };
        links.any(|link| {
            // SAFETY: The link is the `all` of a region, which stays as long as the pool; only the
            // one field is looked at.
            let rkey_owner = unsafe {
                let mr = kernel::container_of!(link.as_ptr(), Mr<U>, all);
                &(*mr).rkey_owner
            };
            rkey_owner.is(xid, handle)
        })
    }
}
