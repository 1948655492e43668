// SPDX-License-Identifier: GPL-2.0

//! `rust/verbs/endpoint`, with a device that takes each chain.

#[path = "../../../../../../rust/verbs/endpoint/closing.rs"]
mod closing;
#[path = "../../../../../../rust/verbs/endpoint/send_queue.rs"]
pub(crate) mod send_queue;

mod drain;

mod bad_wr {
    #[allow(clippy::allow_attributes, dead_code, reason = "no chain is refused")]
    #[derive(Clone, Copy, Debug)]
    pub(in crate::verbs) enum BadWr {
        First,
        Last,
        Unknown,
    }
}

pub(crate) mod completion {
    pub(crate) type Done = fn();
}

pub(in crate::verbs) mod send_wr {
    use crate::bindings;

    pub(in crate::verbs) fn set_cqe(wr: &mut bindings::ib_send_wr, cqe: *mut bindings::ib_cqe) {
        wr.wr_cqe = cqe;
    }
}

pub(crate) mod ep {
    use std::marker::PhantomData;

    use kernel::prelude::Error;

    use super::bad_wr::BadWr;
    use crate::bindings::ib_send_wr;

    /// Work requests may refer to it.
    pub(in crate::verbs) trait HeldUntilDrained: Send + Sync + 'static {
        /// The queues are gone.
        ///
        /// # Safety
        ///
        /// So they are.
        unsafe fn queues_ended(&self) {}
    }

    /// An end of a connection.
    pub(crate) struct Endpoint<C>(pub(in crate::verbs) PhantomData<C>);

    impl<C> Endpoint<C> {
        /// Posts a chain.
        ///
        /// # Safety
        ///
        /// None here.
        pub(super) unsafe fn post_send_raw(
            &self,
            _: *const ib_send_wr,
        ) -> Result<(), (Error, BadWr)> {
            Ok(())
        }
    }
}

mod ops {
    pub(crate) trait EndpointOps {}
    impl EndpointOps for () {}
}
