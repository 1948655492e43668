// SPDX-License-Identifier: GPL-2.0

//! `rust/verbs/mr`, with MRs that a device knows nothing of.

#[path = "../../../../../../rust/verbs/mr/mr_alloc.rs"]
mod mr_alloc;
#[path = "../../../../../../rust/verbs/mr/mr_pool.rs"]
mod mr_pool;
#[path = "../../../../../../rust/verbs/mr/rkey.rs"]
mod rkey;
#[path = "../../../../../../rust/verbs/mr/rkey_owner.rs"]
mod rkey_owner;

mod ib_mr {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use kernel::prelude::Result;
    use kernel::sync::Arc;

    use crate::bindings;
    use crate::verbs::device::pd::Pd;

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Exposed {
        pub(crate) handle: u32,
        pub(crate) length: u32,
        pub(crate) offset: u64,
    }

    pub(super) struct IbMr;

    impl IbMr {
        pub(super) fn alloc(_: &Arc<Pd>, _: u32, _: bool) -> Result<(Self, u32, u32)> {
            static NEXT: AtomicU32 = AtomicU32::new(1);

            let id = NEXT.fetch_add(1, Relaxed);
            Ok((Self, id, id))
        }

        pub(super) fn as_ptr(&self) -> *mut bindings::ib_mr {
            std::ptr::null_mut()
        }
    }
}

mod sg {
    use kernel::prelude::Result;
    use kernel::sync::Arc;

    use crate::verbs::device::pd::Pd;
    use crate::Payload;

    /// A scatterlist that loom watches.
    pub(super) struct ScatterList(pub(super) Payload);

    impl ScatterList {
        pub(super) fn new(_: &Arc<Pd>, _: u32) -> Result<Self> {
            Ok(Self(Payload::new(0)))
        }

        pub(super) fn unmap(&mut self) {
            self.0.access();
        }
    }
}

mod pool;
