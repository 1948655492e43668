// SPDX-License-Identifier: GPL-2.0

//! A law that each message shows: no end has more Calls outstanding than the other has granted, in
//! either direction (RFC 8166 Section 3.3.1, RFC 8167 Section 4.1).

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use kernel::sched;

use crate::wire::{Body, Header};

/// What one end of a connection has sent.
struct Direction {
    outstanding: BTreeSet<u32>,
    granted: u32,
}

thread_local! {
    /// By the queue pair of the end that sends the Calls.
    static DIRECTIONS: RefCell<BTreeMap<u32, Direction>> = const { RefCell::new(BTreeMap::new()) };
}

/// A message of one queue pair reaches the other. `keeps` says whether the sender has to keep to
/// the law.
pub(super) fn message(from: u32, to: u32, bytes: &[u8], keeps: bool) {
    let Ok(header) = Header::decode(bytes) else {
        return;
    };
    let is_call = match &header.body {
        Body::Msg { payload, .. } => payload.to_vec().get(4..8) == Some(&[0; 4]),
        Body::NoMsg { .. } => !is_outstanding(to, header.xid),
        Body::Error(_) => false,
        Body::Done => return,
    };
    DIRECTIONS.with_borrow_mut(|directions| {
        let caller = if is_call { from } else { to };
        let direction = directions.entry(caller).or_insert_with(|| Direction {
            outstanding: BTreeSet::new(),
            granted: 1,
        });
        if !is_call {
            // A grant that shrinks may cross Calls.
            if direction.outstanding.remove(&header.xid) {
                direction.granted = direction.granted.max(header.credits);
            }
            return;
        }
        direction.outstanding.insert(header.xid);
        let (count, granted) = (direction.outstanding.len(), direction.granted);
        if keeps && count > granted as usize {
            sched::fail(format_args!(
                "QP {from} has {count} Calls outstanding, and {granted} credits"
            ));
        }
    });
}

fn is_outstanding(caller: u32, xid: u32) -> bool {
    DIRECTIONS.with_borrow(|directions| {
        let direction = directions.get(&caller);
        direction.is_some_and(|direction| direction.outstanding.contains(&xid))
    })
}
