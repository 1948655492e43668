// SPDX-License-Identifier: GPL-2.0

//! A device that maps all memory, and counts the mappings.

pub(crate) mod attrs {
    pub(crate) struct SenderSizes {
        pub(crate) messages: u32,
        pub(crate) buffer: usize,
        pub(crate) sges: u32,
    }
}

pub(crate) mod pd {
    use std::sync::atomic::AtomicUsize;

    /// A domain. No model depends on the order of its count.
    pub(crate) struct Pd {
        /// Pages that are mapped.
        pub(crate) mapped: AtomicUsize,
    }
}

pub(crate) mod dma_buf {
    use kernel::alloc::Flags;
    use kernel::prelude::Result;
    use kernel::sync::Arc;
    use loom::cell::UnsafeCell;

    use super::pd::Pd;
    use crate::bindings::ib_sge;

    #[derive(Clone, Copy)]
    pub(crate) enum Direction {
        ToDevice,
    }

    impl Direction {
        pub(in crate::verbs) fn as_raw(self) -> Self {
            self
        }
    }

    /// A buffer that loom watches.
    pub(crate) struct DmaBuffer {
        memory: Vec<u8>,
        watch: UnsafeCell<()>,
        pd: Arc<Pd>,
    }

    impl DmaBuffer {
        pub(crate) fn new(pd: &Arc<Pd>, size: usize, _: Direction, _: Flags) -> Result<Self> {
            Ok(Self {
                memory: vec![0; size],
                watch: UnsafeCell::new(()),
                pd: pd.clone(),
            })
        }

        pub(crate) fn pd(&self) -> &Pd {
            &self.pd
        }

        pub(crate) fn len(&self) -> usize {
            self.memory.len()
        }

        pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
            self.watch.with_mut(|_| ());
            &mut self.memory
        }

        pub(crate) fn sge(&self, len: usize) -> ib_sge {
            ib_sge {
                addr: 0,
                length: len as u32,
            }
        }

        pub(crate) fn sync_for_device(&self, _: usize) {
            self.watch.with(|_| ());
        }
    }
}

pub(crate) mod dma_map {
    use std::sync::atomic::Ordering::Relaxed;

    use super::dma_buf::Direction;
    use super::pd::Pd;
    use crate::bindings::ib_sge;
    use crate::lib::bvec::BVec;

    pub(in crate::verbs) struct DmaMapper<'a>(&'a Pd);

    impl<'a> DmaMapper<'a> {
        pub(in crate::verbs) fn new(pd: &'a Pd) -> Self {
            Self(pd)
        }

        pub(in crate::verbs) fn map_bvec(
            &self,
            bvec: &BVec<'_>,
            _: Direction,
        ) -> Result<ib_sge, u64> {
            self.0.mapped.fetch_add(1, Relaxed);
            Ok(ib_sge {
                addr: bvec.page().addr() as u64,
                length: 1,
            })
        }

        /// # Safety
        ///
        /// None here.
        pub(in crate::verbs) unsafe fn unmap_bvec(&self, _: u64, _: u32, _: Direction) {
            let mapped = self.0.mapped.fetch_sub(1, Relaxed);
            assert!(mapped > 0, "a page is unmapped twice");
        }
    }
}
