// SPDX-License-Identifier: GPL-2.0

//! `rust/sunrpc`, and what the models need of the files that they leave out.

#[path = "../../../../../rust/sunrpc/xprt/slot_state.rs"]
mod slot_state;

pub(crate) mod svc {
    use kernel::sync::atomic::Atomic;
    use kernel::sync::atomic::Relaxed;

    /// A timer that counts how often it is armed. Time stands still.
    pub(crate) struct XprtTimer(Atomic<u32>);

    impl XprtTimer {
        /// A timer that loom knows.
        pub(crate) fn new() -> Self {
            let timer = Self(Atomic::new(0));
            assert_eq!(timer.armed(), 0);
            timer
        }

        pub(crate) fn now() -> u64 {
            0
        }

        pub(crate) fn jiffies(seconds: u32) -> u64 {
            seconds.into()
        }

        pub(crate) fn arm(&self, _when: u64) {
            self.0.fetch_add(1, Relaxed);
        }

        pub(crate) fn armed(&self) -> u32 {
            self.0.load(Relaxed)
        }
    }

    /// A transport whose peer no export has admitted.
    pub(crate) struct XprtHandle;

    impl XprtHandle {
        pub(crate) fn is_peer_valid(&self) -> bool {
            false
        }
    }
}

mod slot;
