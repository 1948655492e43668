// SPDX-License-Identifier: GPL-2.0

//! MRs for the RDMA Reads of a Call over iWARP.

#[path = "../../../../rust/server/read_mrs.rs"]
mod read_mrs;

#[cfg(test)]
mod tests {
    use super::read_mrs::ReadMrBudget;
    use crate::wire::{Body, Header};
    use kernel::page::PAGE_SIZE;

    const PAGE: u64 = PAGE_SIZE as u64;

    /// An RDMA_NOMSG whose Read list has these positions and lengths.
    fn long_call(reads: &[(u32, u32)]) -> Vec<u8> {
        let mut words = vec![1, 1, 16, 1];
        for (position, length) in reads {
            words.extend([1, *position, 7, *length, 0, 0]);
        }
        words.extend([0, 0, 0]);
        words.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    fn needed(pages: u32, reads: &[(u32, u32)], long: bool) -> u32 {
        let call = long_call(reads);
        let Body::NoMsg { chunks } = Header::decode(&call).unwrap().body else {
            panic!("another message");
        };
        ReadMrBudget::new(100, pages).needed(chunks.reads, long)
    }

    /// MRs of `pages` pages for a sink that starts where it touches the most pages.
    fn model(pages: u32, length: u32) -> u32 {
        let touched = |offset: u64| (offset + u64::from(length)).div_ceil(PAGE);
        let most = [0, 1, PAGE / 2, PAGE - 1].map(touched).into_iter().max();
        most.unwrap().div_ceil(u64::from(pages.max(1))) as u32
    }

    #[test]
    fn each_sink_may_start_anywhere_in_a_page() {
        for pages in [0, 1, 2, 3, 16, 255, 256] {
            for whole in [0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 512] {
                for more in [-1, 0, 2, 4] {
                    let length = i64::from(whole) * PAGE as i64 + more;
                    let Ok(length @ 2..) = u32::try_from(length) else {
                        continue;
                    };
                    let found = needed(pages, &[(0, length)], true);
                    assert_eq!(found, model(pages, length), "{pages} pages, {length} bytes");
                }
            }
        }
    }

    #[test]
    fn segments_and_splits_add_up() {
        assert_eq!(needed(16, &[], true), 0);
        assert_eq!(needed(16, &[(0, 0), (8, 0)], true), 0);
        let both = [(0, 100), (40, 200)];
        assert_eq!(needed(16, &both, true), 3);
        assert_eq!(needed(16, &both, false), 2);
        let many = vec![(40, u32::MAX); 64];
        let one = needed(1, &many[..1], true);
        assert_eq!(needed(1, &many, true), 64 * one);
        assert_eq!(ReadMrBudget::new(7, 16).total(), 7);
    }
}
