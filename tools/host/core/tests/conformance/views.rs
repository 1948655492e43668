// SPDX-License-Identifier: GPL-2.0

//! The views of a header: their sizes, and the words for trace events.

use crate::support::*;
use rpcrdma_core::wire::fixed_words;
use rpcrdma_core::wire::Body;
use rpcrdma_core::wire::ChunkLists;
use rpcrdma_core::wire::Header;

/// The lists of an RDMA_MSG with `n` Read segments, and a Write chunk of `n` segments.
fn with_lists<T>(n: u32, look: impl Fn(&ChunkLists<'_>) -> T) -> T {
    let mut body = Vec::new();
    for handle in 0..n {
        body.extend([1, 8]);
        body.extend(hloo(handle, 100, 0));
    }
    body.extend([0, 1, n]);
    for handle in 0..n {
        body.extend(hloo(handle, 100, 0));
    }
    body.extend([0, 0]);
    match Header::decode(&message(0, &[&body])).unwrap().body {
        Body::Msg { chunks, .. } => look(&chunks),
        other => panic!("{other:?}"),
    }
}

#[test]
fn read_segments_are_counted() {
    for n in [0, 1, 2, 5] {
        with_lists(n, |lists| {
            let n = n as usize;
            assert_eq!(lists.reads.len(), n);
            assert_eq!(lists.reads.is_empty(), n == 0);
            let mut segments = lists.reads.segments();
            for left in (0..=n).rev() {
                assert_eq!(segments.size_hint(), (left, Some(left)));
                assert_eq!(segments.next().is_some(), left > 0);
            }
        });
    }
}

#[test]
fn segments_of_a_chunk_are_counted() {
    for n in [0, 1, 2, 5] {
        with_lists(n, |lists| {
            let n = n as usize;
            let chunk = lists.writes.chunks().next().unwrap();
            assert_eq!(chunk.len(), n);
            assert_eq!(chunk.is_empty(), n == 0);
            let mut segments = chunk.segments();
            for left in (0..=n).rev() {
                assert_eq!(segments.size_hint(), (left, Some(left)));
                assert_eq!(segments.next().is_some(), left > 0);
            }
        });
    }
}

#[test]
fn words_of_a_trace_event_end_with_the_message() {
    let bytes = words(&[XID, 1, 32, 4, 5]);
    assert_eq!(fixed_words(&bytes), [XID, 1, 32, 4]);
    assert_eq!(fixed_words(&bytes[..16]), [XID, 1, 32, 4]);
    assert_eq!(fixed_words(&bytes[..15]), [XID, 1, 32, 0]);
    assert_eq!(fixed_words(&bytes[..8]), [XID, 1, 0, 0]);
    assert_eq!(fixed_words(&bytes[..3]), [0; 4]);
    assert_eq!(fixed_words(&[]), [0; 4]);
}
