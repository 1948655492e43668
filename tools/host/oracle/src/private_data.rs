// SPDX-License-Identifier: GPL-2.0

//! Private data is found where it is, and nowhere else.

use rpcrdma_core::wire::extensions::Announcement;
use rpcrdma_core::wire::extensions::Offer;
use rpcrdma_core::wire::private_data::PrivateData;
use rpcrdma_core::wire::private_data::MAX_SIZE;
use rpcrdma_core::wire::private_data::MIN_SIZE;

/// Whatever is found is what would have been sent, but for reserved bits.
pub fn private_data(octets: &[u8]) {
    offer(octets);
    let found = PrivateData::find(octets);
    let places: Vec<usize> = (0..octets.len())
        .filter(|at| octets[*at..].starts_with(&[0xf6, 0xab, 0x0e, 0x18, 1]))
        .filter(|at| octets.len() - at >= 8)
        .collect();
    let Some(found) = found else {
        assert!(places.is_empty());
        assert_eq!(PrivateData::of_peer(octets), PrivateData::default());
        return;
    };
    for size in [found.send_size, found.receive_size] {
        assert!((MIN_SIZE..=MAX_SIZE).contains(&size) && size % 1024 == 0);
    }
    let mut sent = octets[places[0]..places[0] + 8].to_vec();
    sent[5] &= 1;
    assert_eq!(found.encode()[..], sent);
}

/// The second block is found likewise, and neither block hides the other.
fn offer(octets: &[u8]) {
    let mut places = (0..octets.len())
        .filter(|at| octets[*at..].starts_with(&[0xd3, 0x97, 0x1e, 0xa4, 1]))
        .filter(|at| octets.len() - at >= 8);
    let pulled_replies = places.next().is_some_and(|at| octets[at + 5] & 1 != 0);
    let found = Offer::of_peer(octets);
    assert_eq!(found, Offer { pulled_replies });

    let own = PrivateData::of_peer(octets);
    let announced = Announcement::new(&own, &found);
    assert_eq!(announced.as_octets()[..8], own.encode());
    assert_eq!(PrivateData::find(announced.as_octets()), Some(own));
    assert_eq!(Offer::of_peer(announced.as_octets()), found);
}
