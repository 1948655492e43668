// SPDX-License-Identifier: GPL-2.0

//! The draft on reliable replies: slots of exposed Replies, deadlines, and RDMA_DONE.

use rpcrdma_core::engine::responder::exposed::ExposedSlot;
use rpcrdma_core::engine::responder::exposed::ExposedSlots;
use rpcrdma_core::engine::responder::exposed::NotExposed;

#[test]
fn rr4_4_1_3_4_stray_notifications_are_dropped() {
    let mut slots = ExposedSlots::new(vec![ExposedSlot::Free; 2]);
    assert_eq!(slots.done(1), None);
    assert_eq!(slots.expose(1), Ok(0));
    assert_eq!(slots.done(2), None);
    assert_eq!(slots.done(1), Some(0));
    // A repeated RDMA_DONE, before and after the memory is released.
    assert_eq!(slots.done(1), None);
    slots.released(0);
    assert_eq!(slots.done(1), None);
    assert_eq!(slots.as_slice(), [ExposedSlot::Free; 2]);
}

#[test]
fn rr4_4_1_3_6_released_at_the_deadline_without_notification() {
    let mut slots = ExposedSlots::new(vec![ExposedSlot::Free; 2]);
    for (xid, deadline) in [(1, 10), (2, 20)] {
        let slot = slots.expose(xid).unwrap();
        // The deadline is set when the Reply is posted.
        assert!(slots.next_check(9).is_none_or(|next| next < deadline));
        assert!(slots.set_deadline(slot, deadline));
    }
    assert_eq!(slots.next_check(9), Some(10));
    assert_eq!(slots.expired(9), None);
    assert_eq!(slots.expired(10), Some(0));
    assert_eq!(slots.expired(10), None);
    assert_eq!(slots.next_check(9), Some(19));
    assert_eq!(slots.next_check(11), Some(20));
    // The RDMA_DONE may arrive before the memory is released, or after, or never.
    slots.released(0);
    assert_eq!(slots.as_slice()[0], ExposedSlot::Owed { xid: 1 });
    assert_eq!(slots.done(1), None);
    assert_eq!(slots.as_slice()[0], ExposedSlot::Free);
    assert_eq!(slots.expired(20), Some(1));
    assert_eq!(slots.done(2), None);
    slots.released(1);
    assert_eq!(slots.as_slice()[1], ExposedSlot::Free);
    assert_eq!(slots.next_check(9), None);
}

#[test]
fn rr4_4_1_3_6_overdue_release_is_detected() {
    for late in [None, Some(13), Some(40)] {
        for early in [false, true] {
            let mut slots = ExposedSlots::new(vec![ExposedSlot::Free; 2]);
            assert_eq!(slots.expose(1), Ok(0));
            // The RDMA_DONE may also arrive before the deadline is set.
            if early {
                assert_eq!(slots.done(1), Some(0));
            }
            assert_eq!(slots.set_deadline(0, 10), !early);
            assert!(!slots.is_overdue(10, 30));
            assert_eq!(slots.expired(12), (!early).then_some(0));
            if let Some(now) = late {
                assert_eq!(slots.done(1), None);
                assert_eq!(slots.is_overdue(now, 30), early && now >= 40);
            }
            let due = if early { 40 } else { 42 };
            assert_eq!(slots.next_check(30), Some(due));
            assert!(!slots.is_overdue(due - 1, 30));
            assert!(slots.is_overdue(due, 30));
            slots.released(0);
            assert!(!slots.is_overdue(u64::MAX, 30));
            assert_eq!(slots.next_check(30), None);
        }
    }
}

#[test]
fn rr4_5_2_3_1_one_notification_per_slot() {
    let mut slots = ExposedSlots::new(vec![ExposedSlot::Free; 2]);
    assert_eq!(slots.expose(1), Ok(0));
    assert_eq!(slots.expose(1), Err(NotExposed::SameXid));
    assert_eq!(slots.expose(2), Ok(1));
    assert_eq!(slots.expose(3), Err(NotExposed::Full));
    for slot in [0, 1] {
        slots.set_deadline(slot, 10);
    }
    // Without RDMA_DONE, the memory is released at the deadline, but the slots stay taken.
    while let Some(slot) = slots.expired(10) {
        slots.released(slot);
    }
    let owed = [1, 2].map(|xid| ExposedSlot::Owed { xid });
    assert_eq!(slots.as_slice(), owed);
    assert_eq!(slots.expose(3), Err(NotExposed::Full));
    slots.done(2);
    assert_eq!(slots.as_slice(), [owed[0], ExposedSlot::Free]);
    assert_eq!(slots.expose(3), Ok(1));
    slots.withdraw(1);
    assert_eq!(slots.as_slice()[1], ExposedSlot::Free);
}
