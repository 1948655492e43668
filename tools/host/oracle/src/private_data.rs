// SPDX-License-Identifier: GPL-2.0

//! The messages in private data are found at any offset.

use rpcrdma_core::wire::extensions::Announcement;
use rpcrdma_core::wire::extensions::Offer;
use rpcrdma_core::wire::private_data::PrivateData;
use rpcrdma_core::wire::private_data::MAX_SIZE;
use rpcrdma_core::wire::private_data::MIN_SIZE;

/// Decodes private data. The encoded result is the message found, without reserved bits.
pub fn private_data(bytes: &[u8]) {
    offer(bytes);
    let found = PrivateData::find(bytes);
    let offsets: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(&[0xf6, 0xab, 0x0e, 0x18, 1]))
        .filter(|at| bytes.len() - at >= 8)
        .collect();
    let Some(found) = found else {
        assert!(offsets.is_empty());
        assert_eq!(PrivateData::of_peer(bytes), PrivateData::default());
        return;
    };
    for size in [found.send_size, found.receive_size] {
        assert!((MIN_SIZE..=MAX_SIZE).contains(&size) && size % 1024 == 0);
    }
    let mut sent = bytes[offsets[0]..offsets[0] + 8].to_vec();
    sent[5] &= 1;
    assert_eq!(found.encode()[..], sent);
}

/// Decodes the block of extensions. Neither block hides the other.
fn offer(bytes: &[u8]) {
    let mut offsets = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(&[0xd3, 0x97, 0x1e, 0xa4, 1]))
        .filter(|at| bytes.len() - at >= 8);
    let pulled_replies = offsets.next().is_some_and(|at| bytes[at + 5] & 1 != 0);
    let found = Offer::of_peer(bytes);
    assert_eq!(found, Offer { pulled_replies });

    let own = PrivateData::of_peer(bytes);
    let announced = Announcement::new(&own, &found);
    assert_eq!(announced.as_bytes()[..8], own.encode());
    assert_eq!(PrivateData::find(announced.as_bytes()), Some(own));
    assert_eq!(Offer::of_peer(announced.as_bytes()), found);
}
