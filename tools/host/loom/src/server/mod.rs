// SPDX-License-Identifier: GPL-2.0

//! `rust/server`, and what the models need of the files that they leave out.

#[path = "../../../../../rust/server/page_charge.rs"]
mod page_charge;
#[path = "../../../../../rust/server/read_admission.rs"]
mod read_admission;
#[path = "../../../../../rust/server/read_throttle.rs"]
mod read_throttle;
#[path = "../../../../../rust/server/send_backlog.rs"]
mod send_backlog;
#[path = "../../../../../rust/server/stall.rs"]
mod stall;

mod call {
    use super::page_charge::PageCharge;
    use crate::lib::llist_box::LlistBox;

    /// A Call that is to be read.
    #[derive(Default)]
    pub(super) struct Call {
        pub(super) charge: Option<PageCharge>,
        pub(super) mrs: u32,
    }

    #[derive(Default)]
    pub(super) struct User {
        pub(super) call: Call,
    }

    impl User {
        pub(super) fn user_mut(&mut self) -> &mut Self {
            self
        }
    }

    pub(super) type Buffer = LlistBox<User>;
}

mod ep {
    use kernel::sync::atomic::Atomic;
    use kernel::sync::atomic::Relaxed;
    use kernel::sync::Guard;
    use kernel::sync::SpinLock;

    use super::read_throttle::ReadBacklog;
    use super::read_throttle::ReadThrottle;
    use crate::sunrpc::svc::XprtHandle;
    use crate::Pinned;

    pub(super) struct Incoming {
        pub(super) read_backlog: ReadBacklog,
    }

    /// The context of a connection that is established.
    pub(super) struct ServerEp {
        pub(super) read_throttle: ReadThrottle,
        pub(super) incoming: Pinned<SpinLock<Incoming>>,
        woken: Atomic<bool>,
    }

    impl ServerEp {
        /// A context that loom knows.
        pub(super) fn new() -> Self {
            let incoming = Incoming {
                read_backlog: ReadBacklog::new(),
            };
            let ctx = Self {
                read_throttle: ReadThrottle::new(),
                incoming: crate::pinned(SpinLock::new(incoming)),
                woken: Atomic::new(false),
            };
            assert!(ctx.read_throttle.pages() == 0 && !ctx.is_woken());
            ctx.read_throttle.none_deferred();
            ctx
        }

        pub(super) fn xprt(&self) -> Option<&XprtHandle> {
            None
        }

        pub(super) fn wake_for(&self, incoming: Guard<'_, Incoming>) {
            drop(incoming);
            self.woken.store(true, Relaxed);
        }

        pub(super) fn is_woken(&self) -> bool {
            self.woken.load(Relaxed)
        }
    }
}

mod exposed {
    use crate::verbs::SendCtxt;

    pub(super) struct Exposing {
        pub(super) ctxt: SendCtxt,
    }
}

mod tunables {
    use crate::lib::counter::Counter;
    use crate::lib::counter::Gauge;

    pub(super) struct Tunable(u32);

    impl Tunable {
        pub(super) fn get(&self) -> u32 {
            self.0
        }
    }

    pub(super) static STALL_SECONDS: Tunable = Tunable(3);
    /// An eighth is the share of a connection that no export has admitted.
    pub(super) static MAX_READ_PAGES: Tunable = Tunable(8);
    pub(super) static READ_PAGES: Gauge = Gauge::new();
    pub(super) static UNADMITTED_READ_PAGES: Gauge = Gauge::new();
    pub(super) static DEFERRED_READS: Counter = Counter;
}

mod reads;
mod room;
mod stalled;
