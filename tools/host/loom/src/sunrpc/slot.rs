// SPDX-License-Identifier: GPL-2.0

//! Models of `SlotState`.

use loom::sync::Arc;
use loom::thread;

use super::slot_state::Refusal;
use super::slot_state::SlotState;
use crate::explore;
use crate::explore_orders;
use crate::Payload;

/// An idle slot that loom knows.
fn slot() -> Arc<SlotState<Payload>> {
    let slot = SlotState::new();
    assert!(slot.is_idle());
    Arc::new(slot)
}

/// Claims the Call and answers it; whether it did.
fn answer(slot: &SlotState<Payload>) -> bool {
    let Some(mut claim) = slot.claim() else {
        return false;
    };
    claim.inflight_mut().access();
    let (empty, inflight) = claim.take();
    drop(inflight);
    empty.answered();
    true
}

/// Takes the Call back; whether it did.
fn give_up(slot: &SlotState<Payload>) -> bool {
    let Some(claim) = slot.claim() else {
        return false;
    };
    let (empty, inflight) = claim.take();
    drop(inflight);
    empty.give_up();
    true
}

/// Threads in which a Reply arrives and a disconnect takes the Call back.
fn reply_and_disconnect(
    slot: &Arc<SlotState<Payload>>,
) -> (thread::JoinHandle<bool>, thread::JoinHandle<bool>) {
    let (answered, given_up) = (slot.clone(), slot.clone());
    (
        thread::spawn(move || answer(&answered)),
        thread::spawn(move || give_up(&given_up)),
    )
}

/// A sender commits a Call while two Replies to it arrive. Law: at most one is matched, the Call is
/// done if one is and sent if not, and accesses to what is in flight are ordered.
#[test]
fn call_is_answered_once() {
    explore(|| {
        let slot = slot();
        let replies = [(), ()].map(|()| {
            let slot = slot.clone();
            thread::spawn(move || answer(&slot))
        });
        // SAFETY: The slot is idle, and no other thread sends.
        unsafe { slot.commit(Payload::new(0)) };
        let answered = replies.map(|reply| reply.join().unwrap());
        assert!(answered != [true, true], "the Call is answered twice");
        let answered = answered != [false, false];
        assert_eq!(slot.is_answered(), answered);
        assert_eq!(slot.is_sent(), !answered);
        assert_eq!(answer(&slot), !answered);
    });
}

/// A Reply arrives while a disconnect takes the Call back, and the sender sends the Call again as
/// soon as the slot is idle. Law: the slot has one owner, and what was in flight is accessed in
/// order: the second commit is behind the take of the first.
#[test]
fn call_is_sent_again_behind_the_disconnect() {
    explore(|| {
        let slot = slot();
        // SAFETY: The slot is idle, and no other thread sends.
        unsafe { slot.commit(Payload::new(0)) };
        let (reply, disconnect) = reply_and_disconnect(&slot);
        let again = slot.is_idle();
        if again {
            // SAFETY: The slot is idle, and no other thread sends.
            unsafe { slot.commit(Payload::new(1)) };
        }
        let answered = reply.join().unwrap();
        let taken = disconnect.join().unwrap();
        assert!(answered || taken);
        assert!(again || !(answered && taken), "the slot had two owners");
    });
}

/// A claim is dropped, or what it took is put back, while another thread tries to claim the Call.
/// Law: the Call stays outstanding with what is in flight, and the other thread finds that whole.
#[test]
fn claim_that_is_returned_leaves_the_call_sent() {
    for puts_back in [false, true] {
        explore(move || {
            let slot = slot();
            // SAFETY: The slot is idle, and no other thread sends.
            unsafe { slot.commit(Payload::new(7)) };
            let other = {
                let slot = slot.clone();
                thread::spawn(move || answer(&slot))
            };
            if let Some(mut claim) = slot.claim() {
                claim.inflight_mut().access();
                if puts_back {
                    let (empty, inflight) = claim.take();
                    inflight.access();
                    empty.put_back(inflight);
                }
            }
            let answered = other.join().unwrap();
            assert_eq!(slot.is_sent(), !answered);
            assert_eq!(answer(&slot), !answered);
        });
    }
}

/// The worker refuses a claimed Call while the task takes the refusal and sends again. Law: the
/// task finds the refusal at most once, and sends only behind the worker's last access.
#[test]
fn refusal_is_taken_once() {
    explore(|| {
        let slot = slot();
        // SAFETY: The slot is idle, and no other thread sends.
        unsafe { slot.commit(Payload::new(0)) };
        let worker = {
            let slot = slot.clone();
            thread::spawn(move || {
                let (empty, inflight) = slot.claim().unwrap().take();
                drop(inflight);
                empty.refused(Refusal::SendAgain);
            })
        };
        // SAFETY: This thread is the task, which owns a slot whose Call is refused.
        let early = unsafe { slot.take_refusal() };
        // SAFETY: As above.
        unsafe { slot.reset() };
        let again = slot.is_idle();
        if again {
            // SAFETY: The slot is idle, and no other thread sends.
            unsafe { slot.commit(Payload::new(1)) };
        }
        worker.join().unwrap();
        // SAFETY: As above.
        let late = unsafe { slot.take_refusal() };
        if again {
            assert_eq!(late, None);
        } else {
            assert_eq!((early, late), (None, Some(Refusal::SendAgain)));
        }
    });
}

/// A task gives up its RPC and uses the slot again at once, while a Reply arrives and a disconnect
/// takes the Call back. Law: one of the three ends the Call, and what was in flight is accessed in
/// order: the next commit is behind the end.
#[test]
fn slot_of_an_abandoned_call_is_used_again() {
    explore_orders(|| {
        let slot = slot();
        // SAFETY: The slot is idle, and no other thread sends.
        unsafe { slot.commit(Payload::new(0)) };
        let (reply, disconnect) = reply_and_disconnect(&slot);
        // `buf_free`.
        let abandoned = slot.is_sent() && give_up(&slot);
        // SAFETY: This thread is the task, which owns the slot.
        unsafe { slot.reset() };
        let again = slot.is_idle();
        if again {
            // SAFETY: The slot is idle, and no other thread sends.
            unsafe { slot.commit(Payload::new(1)) };
        }
        let ended = [abandoned, reply.join().unwrap(), disconnect.join().unwrap()];
        let ended = ended.iter().filter(|ended| **ended).count();
        // The Reply or the disconnect may find the second Call, too.
        assert!(ended >= 1, "no thread ends the Call");
        assert!(ended <= 1 + usize::from(again), "the Call ends twice");
        assert_eq!(slot.is_sent(), again && ended == 1);
    });
}
