// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 4.3: the use of the chunk lists.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::remaining;
use rpcrdma_core::engine::responder::reply::CannotReply;
use rpcrdma_core::engine::responder::reply::Form;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::ReplyLimits;

/// A Call with Write chunks of one segment each, or empty (`None`), and perhaps a Reply chunk.
fn call(writes: &[Option<u32>], reply: Option<u32>) -> Vec<u8> {
    let mut body = vec![0];
    for (n, length) in (1..).zip(writes) {
        match length {
            Some(length) => {
                body.extend([1, 1]);
                body.extend(hloo(n, *length, 0x1000));
            }
            None => body.extend([1, 0]),
        }
    }
    body.push(0);
    match reply {
        Some(length) => {
            body.extend([1, 1]);
            body.extend(hloo(99, length, 0x9000));
        }
        None => body.push(0),
    }
    message(0, &[&body, &rpc(CALL)])
}

const REPLY_LIMITS: ReplyLimits = ReplyLimits {
    threshold: 4096,
    refuses_unused: false,
    exposed_segments: 0,
};

/// Plans a Reply and encodes its header. Returns its form, the bytes in each returned Write chunk,
/// and the bytes in the returned Reply chunk.
fn convey(call: &[u8], results: &[Payload], length: u32) -> (Form, Vec<u64>, Option<u64>) {
    let chunks = call_at_server(call).chunks;
    let reply = reply::plan(&chunks, results, &reply_shape(length), &REPLY_LIMITS).unwrap();
    let mut buf = [0; 1024];
    let end = reply.encode(XID, 32, [], &mut buf).unwrap();
    assert_eq!(end, reply.header() as usize);
    buf[end..end + 8].copy_from_slice(&words(&[XID, REPLY]));
    let lists = reply_at_client(&buf[..end + 8]).chunks;
    assert!(lists.reads.is_empty());
    (
        reply.form(),
        lists.writes.chunks().map(|chunk| chunk.total()).collect(),
        lists.reply.map(|chunk| chunk.total()),
    )
}

#[test]
fn r8166_4_3_1_3_no_read_list_in_replies() {
    let reply = msg_with_reads(&[(8, segment(1, 4, 0))], REPLY, 6);
    assert_eq!(from_server(&reply, PLAIN).unwrap_err(), Response::Drop);
    assert_eq!(from_server(&reply, PULLED).unwrap_err(), Response::Drop);
}

#[test]
fn r8166_4_3_2_2_small_results_go_to_write_chunks_too() {
    let call = call(&[Some(8192)], None);
    assert_eq!(
        convey(&call, &[item(100, 7)], 108),
        (Form::Inline, vec![7], None)
    );
}

#[test]
fn r8166_4_3_2_1_2_results_to_chunks_in_order_until_either_runs_out() {
    let call = call(&[Some(8192), Some(8192)], None);
    let results = [item(100, 1000), item(1200, 2000), item(3300, 100)];
    let (form, writes, _) = convey(&call, &results, 3400);
    assert_eq!((form, writes), (Form::Inline, vec![1000, 2000]));
    let chunks = call_at_server(&call).chunks;
    let reply = reply::plan(&chunks, &results, &reply_shape(3400), &REPLY_LIMITS).unwrap();
    assert_eq!(
        reply.runs().collect::<Vec<_>>(),
        [(0, 100), (1100, 100), (3200, 200)]
    );
    assert_eq!(reply.left(), 400);
}

#[test]
fn r8166_4_3_2_2_1_next_result_takes_the_chunk_of_a_failed_one() {
    // A failed READ has no result. The result of the next READ takes the only chunk.
    let call = call(&[Some(8192)], None);
    assert_eq!(convey(&call, &[item(300, 4096)], 4396).1, [4096]);
}

#[test]
fn r8166_4_3_2_2_2_unused_chunks_are_returned_with_zero_lengths() {
    let call = call(&[Some(8192), Some(4096)], Some(512));
    assert_eq!(convey(&call, &[], 100), (Form::Inline, vec![0, 0], Some(0)));
}

#[test]
fn r8166_4_3_2_3_3_result_of_an_empty_chunk_is_inline() {
    let call = call(&[None, Some(8192)], None);
    let results = [item(100, 1000), item(1200, 2000)];
    let chunks = call_at_server(&call).chunks;
    let reply = reply::plan(&chunks, &results, &reply_shape(3200), &REPLY_LIMITS).unwrap();
    assert_eq!(reply.runs().collect::<Vec<_>>(), [(0, 1200)]);
    assert_eq!(reply.writes().count(), 1);
    assert_eq!(convey(&call, &results, 3200).1, [0, 2000]);
    let mut buf = [0; 256];
    reply.encode(XID, 32, [], &mut buf).unwrap();
    assert_eq!(buf[16..32], words(&[0, 1, 0, 1]), "returned empty");
}

#[test]
fn r8166_4_3_2_3_4_unreduced_result_may_make_the_reply_long() {
    let call = call(&[None], Some(65_536));
    let (form, writes, reply) = convey(&call, &[item(100, 60_000)], 60_100);
    assert_eq!(form, Form::ReplyChunk);
    assert_eq!((writes, reply), (vec![0], Some(60_100)));
}

#[test]
fn r8166_4_3_3_1_reply_chunk_if_the_largest_reply_does_not_fit() {
    let limits = CallLimits {
        receive: 1024,
        ..limits()
    };
    for (reply, expected) in [
        (1024 - 28, ReplyPlan::Inline),
        (1024 - 27, ReplyPlan::ReplyChunk),
        (32_768, ReplyPlan::ReplyChunk),
    ] {
        assert_eq!(
            plan(&small_call(100, reply), &limits).unwrap().reply,
            expected
        );
    }
}

#[test]
fn r8166_4_3_3_1_header_growth_counts() {
    // A Write chunk of one segment adds 24 bytes to the header of the Reply that returns it.
    for head in 0..4096 {
        let mut shape = read_call(20_000);
        shape.reply.head = head;
        shape.reply.tail = 0;
        let fits = 28 + 24 + head <= 4096;
        let expected = match fits {
            true => ReplyPlan::WriteChunk,
            false => ReplyPlan::ReplyChunk,
        };
        assert_eq!(plan(&shape, &limits()).unwrap().reply, expected, "{head}");
    }
    // It adds as many to the header of the Call that offers it.
    for head in 4000..4096 {
        let mut shape = read_call(20_000);
        shape.call.head = head;
        let fits = 28 + 24 + head <= 4096;
        let expected = match fits {
            true => CallPlan::Inline { pull_up: false },
            false => CallPlan::PositionZero,
        };
        assert_eq!(plan(&shape, &limits()).unwrap().call, expected, "{head}");
    }
}

#[test]
fn r8166_4_3_3_2_small_reply_is_inline_despite_a_reply_chunk() {
    let call = call(&[], Some(65_536));
    assert_eq!(convey(&call, &[], 2000), (Form::Inline, vec![], Some(0)));
}

#[test]
fn r8166_4_3_3_3_reply_chunk_is_returned_with_lengths_written() {
    let call = call(&[], Some(65_536));
    assert_eq!(
        convey(&call, &[], 20_000),
        (Form::ReplyChunk, vec![], Some(20_000))
    );
}

#[test]
fn r8166_4_3_3_2_reply_chunk_is_used_for_old_requesters() {
    let form = |lists: &[u32], length| {
        let bytes = message(0, &[lists, &rpc(CALL)]);
        let shape = reply_shape(length);
        let limits = ReplyLimits {
            threshold: 1024,
            refuses_unused: true,
            exposed_segments: 0,
        };
        let chunks = call_at_server(&bytes).chunks;
        let plan = reply::plan(&chunks, &[], &shape, &limits);
        plan.unwrap().form()
    };
    let chunk = hloo(2, 400, 0x2000);
    let alone = [&[0, 0, 1, 1], &chunk[..]].concat();
    let beside_write = [&[0, 1, 1], &hloo(1, 8, 0x1000)[..], &[0, 1, 1], &chunk].concat();
    assert_eq!(form(&alone, 400), Form::ReplyChunk);
    assert_eq!(form(&alone, 1), Form::ReplyChunk);
    assert_eq!(form(&alone, 0), Form::Inline);
    // A Reply that cannot use the Reply chunk is inline if it fits.
    assert_eq!(form(&alone, 404), Form::Inline);
    assert_eq!(form(&beside_write, 400), Form::Inline);
    assert_eq!(form(&[0, 0, 0], 400), Form::Inline);
}

#[test]
fn r8166_4_3_2_2_truncated_results_are_ignored() {
    let results = [item(100, 4096), item(4210, 4096), item(8400, 0)];
    for (length, count) in [(4196, 1), (4208, 1), (8306, 2), (8400, 3), (99, 0)] {
        assert_eq!(remaining(&results, length), &results[..count], "{length}");
    }
    assert_eq!(remaining(&[item(8, u32::MAX)], 4096), &[]);
}

#[test]
fn r8166_4_5_3_2_too_small_chunks_are_refused_before_writing() {
    let bytes = call(&[], Some(512));
    let chunks = call_at_server(&bytes).chunks;
    assert_eq!(
        reply::plan(&chunks, &[], &reply_shape(8192), &REPLY_LIMITS).unwrap_err(),
        CannotReply::NoRoom
    );
    let bytes = call(&[Some(2048)], Some(65_536));
    let chunks = call_at_server(&bytes).chunks;
    assert_eq!(
        reply::plan(
            &chunks,
            &[item(100, 2049)],
            &reply_shape(2152),
            &REPLY_LIMITS
        )
        .unwrap_err(),
        CannotReply::WriteChunk {
            segments: 1,
            excess: 1
        }
    );
    // No Reply chunk, and over the threshold.
    let bytes = call(&[], None);
    let chunks = call_at_server(&bytes).chunks;
    assert!(reply::plan(&chunks, &[], &reply_shape(4096 - 28), &REPLY_LIMITS).is_ok());
    assert_eq!(
        reply::plan(&chunks, &[], &reply_shape(4096 - 27), &REPLY_LIMITS).unwrap_err(),
        CannotReply::NoRoom
    );
}

#[test]
fn r8166_4_5_3_2_results_outside_the_reply_are_refused() {
    let bytes = call(&[Some(8192), Some(8192)], None);
    let chunks = call_at_server(&bytes).chunks;
    for results in [
        [item(100, 1000), item(900, 4)],
        [item(100, 1000), item(1096, 400)],
        [item(100, 4), item(u32::MAX, 4)],
        [item(1200, 4), item(100, 4)],
    ] {
        assert_eq!(
            reply::plan(&chunks, &results, &reply_shape(1204), &REPLY_LIMITS).unwrap_err(),
            CannotReply::Results
        );
    }
}

#[test]
fn r8267_6_4_2_2_chunks_that_no_reply_can_return() {
    let can_return = |writes: &[Option<u32>], reply, threshold| {
        let call = call(writes, reply);
        reply::can_return(&call_at_server(&call).chunks, threshold)
    };
    // A header has 28 bytes, a Write chunk of one segment 24, a Reply chunk of one segment 20 more.
    assert!(can_return(&[], None, 28));
    assert!(!can_return(&[Some(4096)], None, 51));
    assert!(can_return(&[Some(4096)], None, 52));
    assert!(!can_return(&[Some(4096), None], Some(4096), 79));
    assert!(can_return(&[Some(4096), None], Some(4096), 80));
}
