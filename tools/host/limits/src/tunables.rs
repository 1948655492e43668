// SPDX-License-Identifier: GPL-2.0

//! The defaults of the server's tunables.

#[path = "../../../../rust/server/tunables.rs"]
mod server;

/// A stand-in for the module's counters, of which the tunables need the types only.
pub(crate) mod lib {
    pub(crate) mod counter {
        pub(crate) struct Counter;
        pub(crate) struct Gauge;

        impl Counter {
            pub(crate) const fn new() -> Self {
                Self
            }
        }

        impl Gauge {
            pub(crate) const fn new() -> Self {
                Self
            }
        }
    }
}

/// A stand-in for sysctl files: tunables have their defaults, and there are no files.
pub(crate) mod sysctl {
    use super::lib::counter::Counter;
    use super::lib::counter::Gauge;
    use kernel::prelude::Result;
    use std::ffi::CStr;

    pub(crate) struct Tunable(u32);

    impl Tunable {
        pub(crate) const fn new(default: u32, min: u32, max: u32) -> Self {
            assert!(min <= default && default <= max);
            Self(default)
        }

        pub(crate) const fn constant(value: u32) -> Self {
            Self(value)
        }

        pub(crate) const fn get(&self) -> u32 {
            self.0
        }
    }

    pub(crate) struct Entry;

    impl Entry {
        pub(crate) const fn tunable(_name: &'static CStr, _tunable: &'static Tunable) -> Self {
            Self
        }

        pub(crate) const fn counter(_name: &'static CStr, _counter: &'static Counter) -> Self {
            Self
        }

        pub(crate) const fn gauge(_name: &'static CStr, _gauge: &'static Gauge) -> Self {
            Self
        }
    }

    pub(crate) struct Registration;

    impl Registration {
        pub(crate) fn new<const N: usize>(
            _path: &'static CStr,
            _table: &'static [Entry; N],
        ) -> Result<Self> {
            Ok(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::server::MAX_EXPOSED_PAGES;
    use super::server::MAX_READ_PAGES;
    use kernel::page::PAGE_SIZE;

    /// The memory that clients can have a server keep does not grow with the page size.
    #[test]
    fn page_limits_are_of_memory() {
        let memory = |pages: u32| pages as usize * PAGE_SIZE;
        assert_eq!(memory(MAX_EXPOSED_PAGES.get()), 64 << 20);
        assert_eq!(memory(MAX_READ_PAGES.get()), 256 << 20);
    }
}
