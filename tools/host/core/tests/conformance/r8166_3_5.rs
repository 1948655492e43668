// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 3.5: short messages, messages with chunks, and long messages.

use crate::support::*;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::Plan;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::call::TooBig;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Layout;
use rpcrdma_core::engine::responder::reassembly::Part;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::CannotReply;
use rpcrdma_core::engine::responder::reply::Form;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::ReadSegment;

#[test]
fn r8166_3_5_1_1_short_message() {
    let Plan { call, reply, .. } = plan(&small_call(120, 200), &limits()).unwrap();
    assert_eq!(call, CallPlan::Inline { pull_up: false });
    assert_eq!(reply, ReplyPlan::Inline);
}

#[test]
fn r8166_3_5_2_1_small_items_stay_inline() {
    let call = plan(&write_call(2_000), &limits()).unwrap().call;
    assert_eq!(call, CallPlan::Inline { pull_up: false });
    let copying = CallLimits {
        pull_up: 2_160,
        ..limits()
    };
    let call = plan(&write_call(2_000), &copying).unwrap().call;
    assert_eq!(call, CallPlan::Inline { pull_up: true });
    let call = plan(&write_call(20_000), &limits()).unwrap().call;
    assert_eq!(call, CallPlan::ReadChunk { position: 160 });
    let reply = plan(&read_call(2_000), &limits()).unwrap().reply;
    assert_eq!(reply, ReplyPlan::Inline);
    let reply = plan(&read_call(20_000), &limits()).unwrap().reply;
    assert_eq!(reply, ReplyPlan::WriteChunk);
}

#[test]
fn r8166_3_5_2_1_too_few_sges_to_gather() {
    // The Call fits the threshold. It takes too many SGEs, and is too long to be copied.
    let mut few = CallLimits {
        sges: 3,
        ..limits()
    };
    let mut shape = write_call(3_000);
    shape.call.page_offset = 4_000;
    let call = plan(&shape, &few).unwrap().call;
    assert_eq!(call, CallPlan::ReadChunk { position: 160 });
    few.pull_up = 4_096;
    let call = plan(&shape, &few).unwrap().call;
    assert_eq!(call, CallPlan::Inline { pull_up: true });
    few.pull_up = 0;
    shape.call_eligible = false;
    let call = plan(&shape, &few).unwrap().call;
    assert_eq!(call, CallPlan::PositionZero);
}

#[test]
fn r8166_3_5_3_1_long_if_reduction_does_not_suffice() {
    // Not eligible.
    let mut shape = write_call(20_000);
    shape.call_eligible = false;
    assert_eq!(
        plan(&shape, &limits()).unwrap().call,
        CallPlan::PositionZero
    );
    // Eligible, but the rest is too long.
    let mut shape = write_call(20_000);
    shape.call.head = 4_100;
    assert_eq!(
        plan(&shape, &limits()).unwrap().call,
        CallPlan::PositionZero
    );
    let mut shape = read_call(20_000);
    shape.reply.head = 4_100;
    assert_eq!(
        plan(&shape, &limits()).unwrap().reply,
        ReplyPlan::ReplyChunk
    );
}

#[test]
fn r8166_3_5_3_2_long_message_is_a_header_only() {
    let reads = [(0, segment(1, 100, 0))];
    let bytes = nomsg_with_reads(&reads);
    assert!(call_at_server(&bytes).payload.is_none());
    // Bytes after the header are ignored.
    let mut more = bytes.clone();
    more.extend(words(&rpc(CALL)));
    let call = call_at_server(&more);
    assert!(call.payload.is_none());
    assert_eq!(call.chunks.reads.len(), 1);
}

#[test]
fn r8166_3_5_3_4_reply_chunk_holds_the_largest_reply() {
    let shape = small_call(100, 10_000);
    let reply = plan(&shape, &limits()).unwrap().reply;
    assert_eq!(reply, ReplyPlan::ReplyChunk);
    // The head may begin at the last byte of a page.
    assert_eq!(limits().segments_for_all(&shape.reply), 1);
    let fine = CallLimits {
        segment_pages: 1,
        ..limits()
    };
    assert_eq!(fine.segments_for_all(&shape.reply), 4);
}

#[test]
fn r8166_3_5_3_5_any_call_may_be_long() {
    let call = nomsg_with_reads(&[(0, segment(1, 40, 0x4000))]);
    let message = call_at_server(&call);
    let bounds = Bounds {
        message: 4096,
        max_inline: 4096,
        chunks: 4,
        segments: 16,
    };
    let assembly = Assembly::plan(None, message.chunks.reads, &bounds)
        .unwrap()
        .unwrap();
    assert_eq!(assembly.layout(), Layout::Whole { length: 40 });
    assert_eq!(
        assembly.parts().collect::<Vec<_>>(),
        [Part::Read(segment(1, 40, 0x4000))]
    );
}

/// A Call with a Write chunk of `write` bytes and a Reply chunk of `reply` bytes.
fn call_with_both(write: u32, reply: u32) -> Vec<u8> {
    let write = hloo(1, write, 0x1000);
    let reply = hloo(2, reply, 0x2000);
    message(0, &[&[0, 1, 1], &write, &[0, 1, 1], &reply, &rpc(CALL)])
}

const REPLY_LIMITS: ReplyLimits = ReplyLimits {
    threshold: 1024,
    refuses_unused: false,
    exposed_segments: 0,
};

#[test]
fn r8166_3_5_3_6_reduction_precedes_the_choice_of_form() {
    let call = call_with_both(8192, 8192);
    let chunks = call_at_server(&call).chunks;
    let results = [Payload {
        offset: 200,
        length: 5_000,
    }];
    // The rest without the item fits inline.
    let reply = reply::plan(&chunks, &results, &reply_shape(5_300), &REPLY_LIMITS).unwrap();
    assert_eq!(reply.form(), Form::Inline);
    assert_eq!((by_write(&reply), reply.left()), (5_000, 300));
    assert_eq!(reply.runs().collect::<Vec<_>>(), [(0, 200), (5_200, 100)]);
    assert!(reply.reply_chunk().is_none());
    // The rest does not fit inline.
    let reply = reply::plan(&chunks, &results, &reply_shape(7_200), &REPLY_LIMITS).unwrap();
    assert_eq!(reply.form(), Form::ReplyChunk);
    assert_eq!((by_write(&reply), reply.left()), (5_000, 2_200));
    let part = reply.reply_chunk().unwrap().next_part(u32::MAX).unwrap();
    assert_eq!(part, segment(2, 8192, 0x2000));
}

#[test]
fn r8166_3_5_3_7_reply_chunk_is_used_when_the_threshold_is_exceeded() {
    let call = call_with_both(8192, 8192);
    let chunks = call_at_server(&call).chunks;
    let header = reply::plan(&chunks, &[], &reply_shape(8), &REPLY_LIMITS)
        .unwrap()
        .header();
    for (length, form) in [
        (1024 - header, Form::Inline),
        (1024 - header + 1, Form::ReplyChunk),
        (8192, Form::ReplyChunk),
    ] {
        let reply = reply::plan(&chunks, &[], &reply_shape(length), &REPLY_LIMITS).unwrap();
        assert_eq!(reply.form(), form, "{length}");
    }
    assert_eq!(
        reply::plan(&chunks, &[], &reply_shape(8193), &REPLY_LIMITS).unwrap_err(),
        CannotReply::NoRoom
    );
}

#[test]
fn r8166_3_5_3_8_roundup_is_inside_long_messages() {
    // Requester: an unreduced Call is head, data and tail. The tail begins with the roundup.
    let mut shape = write_call(20_001);
    shape.call_eligible = false;
    assert_eq!(
        plan(&shape, &limits()).unwrap().call,
        CallPlan::PositionZero
    );
    assert_eq!(shape.call.total(), Some(160 + 20_004));
    // Responder: the roundup of a result in the Reply chunk is written, too.
    let body = [&[0, 0, 1, 1][..], &hloo(2, 8192, 0)];
    let call = message(0, &[body[0], body[1], &rpc(CALL)]);
    let chunks = call_at_server(&call).chunks;
    let results = [Payload {
        offset: 200,
        length: 5_001,
    }];
    let reply = reply::plan(&chunks, &results, &reply_shape(5_204), &REPLY_LIMITS).unwrap();
    assert_eq!(reply.form(), Form::ReplyChunk);
    assert_eq!((by_write(&reply), reply.left()), (0, 5_204));
    assert_eq!(reply.runs().collect::<Vec<_>>(), [(0, 5_204)]);
    let mut writer = reply.reply_chunk().unwrap();
    assert_eq!(writer.next_part(5_204).unwrap().length, 5_204);
}

/// Bytes in an encoded header with this many segments in each chunk.
fn header(reads: u32, write: Option<u32>, reply: Option<u32>) -> u32 {
    let chunk = |segments| (0..segments).map(|n| segment(n, 4096, 0));
    let mut buf = [0; 4096];
    let mut header = HeaderWriter::msg(&mut buf, XID, 32).unwrap();
    for segment in chunk(reads) {
        let position = 160;
        header
            .read_segment(ReadSegment { position, segment })
            .unwrap();
    }
    let mut writes = header.no_more_reads().unwrap();
    if let Some(segments) = write {
        writes.write_chunk(chunk(segments)).unwrap();
    }
    let last = writes.no_more_writes().unwrap();
    let end = match reply {
        Some(segments) => last.reply_chunk(chunk(segments)),
        None => last.no_reply_chunk(),
    };
    u32::try_from(end.unwrap()).unwrap()
}

/// The plan for a limit of `segments` segments, and four more for head and tail.
fn planned(shape: &CallShape, segments: u32) -> Plan {
    let segments = segments + 4;
    let limits = CallLimits {
        segments,
        ..limits()
    };
    plan(shape, &limits).unwrap()
}

#[test]
fn rr4_3_5_1_planned_header_growth_matches_the_encoder() {
    const INLINE: CallPlan = CallPlan::Inline { pull_up: false };
    for segments in 1..=32 {
        // Each segment has 32 pages.
        let data = segments << 17;
        for (more, fits) in [(0, true), (4, false)] {
            // A Read chunk, and the rest of its Call.
            let mut shape = write_call(data);
            shape.call.head = 4096 - header(segments, None, None) + more;
            let call = planned(&shape, segments).call;
            let position = shape.call.head;
            assert_eq!(call == CallPlan::ReadChunk { position }, fits, "{segments}");

            // A Write chunk in the Call that offers it.
            let write = header(0, Some(segments), None);
            let mut shape = read_call(data);
            shape.call.head = 4096 - write + more;
            let Plan { call, reply, .. } = planned(&shape, segments);
            assert_eq!(reply, ReplyPlan::WriteChunk);
            assert_eq!(call == INLINE, fits, "{segments}");

            // A Write chunk in the Reply that returns it.
            let mut shape = read_call(data);
            shape.reply.head = 4096 - write + more - shape.reply.tail;
            let reply = planned(&shape, segments).reply;
            assert_eq!(reply == ReplyPlan::WriteChunk, fits, "{segments}");

            // A Reply chunk, whose first segment may begin at the last byte of a page.
            let room = data - 4095;
            let mut shape = small_call(0, room);
            assert_eq!(limits().segments_for_all(&shape.reply), segments);
            shape.call.head = 4096 - header(0, None, Some(segments)) + more;
            let Plan { call, reply, .. } = planned(&shape, segments);
            assert_eq!(reply, ReplyPlan::ReplyChunk);
            assert_eq!(call == INLINE, fits, "{segments}");
        }
    }
}

#[test]
fn rr4_3_5_1_long_call_header_over_the_threshold_is_too_big() {
    for segments in 1..=32 {
        let mut shape = small_call((segments << 17) - 4095, 200);
        let most = header(segments, None, None);
        for (send, expected) in [(most, Ok(CallPlan::PositionZero)), (most - 1, Err(TooBig))] {
            let limits = CallLimits {
                send,
                segments,
                ..limits()
            };
            let call = plan(&shape, &limits).map(|plan| plan.call);
            assert_eq!(call, expected, "{segments}");
        }
        // One segment more than the limit.
        shape.call.head += 1;
        let limits = CallLimits {
            segments,
            ..limits()
        };
        assert_eq!(plan(&shape, &limits), Err(TooBig));
    }
}
