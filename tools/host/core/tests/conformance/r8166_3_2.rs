// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Sections 3.2 and 3.3: framing, credits, inline thresholds.

use crate::support::*;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::credit::next_grant;
use rpcrdma_core::engine::credit::receives_to_post;
use rpcrdma_core::engine::credit::Window;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::Plan;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::wire::private_data::PrivateData;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::MIN_LEN;

#[test]
fn r8166_3_2_1_header_then_payload() {
    let mut buf = [0xee; 64];
    let header = HeaderWriter::plain(&mut buf, XID, 32).unwrap();
    assert_eq!(header, MIN_LEN);
    let payload = words(&rpc(CALL));
    let mut sent = buf[..header].to_vec();
    sent.extend(&payload);
    assert_eq!(call_at_server(&sent).payload, Some(&payload[..]));
}

#[test]
fn r8166_3_3_1_1_credits_are_the_third_word() {
    let mut buf = [0; 64];
    let header = HeaderWriter::plain(&mut buf, XID, 128).unwrap();
    assert_eq!(buf[8..12], 128_u32.to_be_bytes());
    buf[header..header + 8].copy_from_slice(&words(&[XID, CALL]));
    assert_eq!(call_at_server(&buf).credits, 128);
}

#[test]
fn r8166_3_3_1_3_no_more_calls_than_granted() {
    let mut window = Window::FRESH;
    for credits in [1, 3, 64] {
        window.grant(credits, 64);
        assert_eq!(available(&window, 0), credits);
        assert_eq!(available(&window, credits), 0);
    }
}

#[test]
fn r8166_3_3_1_5_zero_grant_is_one() {
    let mut window = Window::FRESH;
    window.grant(16, 32);
    assert!(window.grant(0, 32));
    assert_eq!(window.granted(), 1);
    assert_eq!(available(&window, 0), 1);
}

#[test]
fn r8166_3_3_1_6_grant_is_bounded_by_request() {
    let mut window = Window::FRESH;
    window.grant(u32::MAX, 32);
    assert_eq!(window.granted(), 32);
    assert_eq!(available(&window, 30), 2);
    // The latest grant counts.
    window.grant(8, 32);
    assert_eq!(available(&window, 30), 0);
    assert_eq!(available(&window, 7), 1);
}

#[test]
fn r8166_3_3_1_6_window_is_restored_from_bits() {
    let mut window = Window::FRESH;
    for credits in [1, 7, 3, 32, 0, u32::MAX] {
        window.grant(credits, u32::MAX);
        assert_eq!(Window::from_bits(window.to_bits()), window);
    }
    // The invariants hold for any number.
    for bits in [0, 1, u64::MAX, 5 << 32, 5 << 32 | 3] {
        let window = Window::from_bits(bits);
        assert!(window.granted() >= 1 && window.receives(0) >= window.granted());
    }
}

#[test]
fn r8166_3_3_1_7_grant_may_shrink_below_outstanding_calls() {
    let mut window = Window::FRESH;
    window.grant(32, 32);
    assert!(window.grant(2, 32));
    for outstanding in 2..=20 {
        assert_eq!(available(&window, outstanding), 0);
    }
    assert_eq!(available(&window, 1), 1);
    assert!(window.grant(32, 32));
    assert!(!window.grant(32, 32));
    assert_eq!(available(&window, 1), 31);
}

#[test]
fn r8166_3_3_1_7_grant_follows_use() {
    // Less than half of the Calls in progress, and few in a second: the grant stays.
    for in_progress in 0..8 {
        assert_eq!(next_grant(16, in_progress, 63, 128), 16);
    }
    let (mut slow_server, mut slow_network) = (16, 16);
    for expected in [32, 64, 128, 128] {
        slow_server = next_grant(slow_server, slow_server / 2, 0, 128);
        slow_network = next_grant(slow_network, 0, 4 * slow_network, 128);
        assert_eq!((slow_server, slow_network), (expected, expected));
    }
    assert_eq!(next_grant(16, 16, 0, 24), 24);
    // A grant is at least 1, and one of 1 grows.
    assert_eq!(next_grant(1, 0, 3, 4), 1);
    assert_eq!(next_grant(1, 1, 0, 4), 2);
    assert_eq!(next_grant(1, 0, 4, 4), 2);
    assert_eq!(next_grant(1, 0, 0, 1), 1);
    assert_eq!(next_grant(u32::MAX, u32::MAX, u32::MAX, u32::MAX), u32::MAX);
}

#[test]
fn r8166_3_3_1_9_receives_for_every_reply() {
    let mut window = Window::FRESH;
    assert_eq!(window.receives(0), 1);
    window.grant(32, 32);
    assert_eq!(window.receives(0), 32);
    assert_eq!(window.receives(16), 48);
    // 32 Calls may be outstanding when the grant shrinks. Their Replies need Receives.
    window.grant(1, 32);
    assert_eq!(window.receives(16), 48);
    // After a batch, at least `needed` and at most `needed + batch` Receives are posted.
    for posted in 0..100 {
        let after = posted + receives_to_post(posted, 48, 8);
        assert!(after >= 48);
        assert!(after <= 56.max(posted));
    }
    assert_eq!(receives_to_post(48, 48, 8), 0);
    assert_eq!(receives_to_post(47, 48, 8), 9);
    assert_eq!(receives_to_post(0, u32::MAX, u32::MAX), u32::MAX);
}

#[test]
fn r8166_3_3_1_9_no_more_calls_than_posted_receives() {
    let mut window = Window::FRESH;
    window.grant(32, 32);
    // All required Receives are posted, or more.
    assert_eq!(window.covered(48, 16), 32);
    assert_eq!(window.covered(56, 16), 32);
    // Allocation has failed for some Receives.
    assert_eq!(window.covered(47, 16), 31);
    assert_eq!(window.covered(20, 16), 4);
    // One Call may be sent, so that its Reply triggers another attempt.
    assert_eq!(window.covered(16, 16), 1);
    assert_eq!(window.covered(0, 16), 1);
}

#[test]
fn r8166_3_3_2_1_thresholds_are_minima() {
    let sizes = [1024, 4096, 65536, 262_144];
    for own_send in sizes {
        for own_receive in sizes {
            for peer_send in sizes {
                for peer_receive in sizes {
                    let end = |send_size, receive_size| PrivateData {
                        remote_invalidation: false,
                        send_size,
                        receive_size,
                    };
                    let own = end(own_send, own_receive);
                    let peer = end(peer_send, peer_receive);
                    let agreement = Agreement::between(&own, &peer);
                    assert_eq!(agreement.send, own_send.min(peer_receive));
                    assert_eq!(agreement.receive, own_receive.min(peer_send));
                    // Both ends compute the same thresholds.
                    let other = Agreement::between(&peer, &own);
                    assert_eq!(agreement.send, other.receive);
                    assert_eq!(agreement.receive, other.send);
                }
            }
        }
    }
}

#[test]
fn r8166_3_3_2_1_threshold_is_exact_and_includes_the_header() {
    let limits = limits();
    let call = plan(&small_call(4096 - 28, 100), &limits).unwrap().call;
    assert_eq!(call, CallPlan::Inline { pull_up: false });
    let call = plan(&small_call(4096 - 27, 100), &limits).unwrap().call;
    assert_eq!(call, CallPlan::PositionZero);
    let reply = plan(&small_call(100, 4096 - 28), &limits).unwrap().reply;
    assert_eq!(reply, ReplyPlan::Inline);
    let reply = plan(&small_call(100, 4096 - 27), &limits).unwrap().reply;
    assert_eq!(reply, ReplyPlan::ReplyChunk);
}

#[test]
fn r8166_3_3_3_3_one_call_before_the_first_reply() {
    assert_eq!(available(&Window::FRESH, 0), 1);
    assert_eq!(available(&Window::FRESH, 1), 0);
}

#[test]
fn r8166_3_3_3_5_default_threshold_is_1024() {
    let own = PrivateData {
        remote_invalidation: true,
        send_size: 4096,
        receive_size: 4096,
    };
    let agreement = Agreement::between(&own, &PrivateData::of_peer(&[]));
    assert_eq!(agreement.send, 1024);
    assert_eq!(agreement.receive, 1024);
    assert!(!agreement.remote_invalidation);
    // The minimum is 1024, which every end must be able to receive.
    let tiny = PrivateData {
        remote_invalidation: false,
        send_size: 0,
        receive_size: 0,
    };
    assert_eq!(Agreement::between(&tiny, &tiny).send, 1024);
}

#[test]
fn r8166_3_3_2_1_each_direction_has_its_threshold() {
    let narrow = CallLimits {
        send: 1024,
        ..limits()
    };
    let Plan { call, reply, .. } = plan(&small_call(2000, 2000), &narrow).unwrap();
    assert_eq!((call, reply), (CallPlan::PositionZero, ReplyPlan::Inline));
    let narrow = CallLimits {
        receive: 1024,
        ..limits()
    };
    let Plan { call, reply, .. } = plan(&small_call(2000, 2000), &narrow).unwrap();
    assert_eq!(
        (call, reply),
        (CallPlan::Inline { pull_up: false }, ReplyPlan::ReplyChunk)
    );
}
