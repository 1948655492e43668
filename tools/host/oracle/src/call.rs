// SPDX-License-Identifier: GPL-2.0

//! The plan for a Call is within the limits.

use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::Plan;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::call::TooBig;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::ReadSegment;
use rpcrdma_core::wire::Segment;

/// Plans a Call, and encodes headers with the most segments that the plan can need.
pub fn call(shape: &CallShape, limits: &CallLimits) {
    let total = |lens: &XdrLens| u64::from(lens.head) + u64::from(lens.data) + u64::from(lens.tail);
    let Plan {
        call,
        reply,
        roundup,
    } = match plan(shape, limits) {
        Ok(plan) => plan,
        Err(TooBig) => {
            // A small Call with a small Reply always has a plan.
            let small = total(&shape.call) + 28 <= u64::from(limits.send)
                && total(&shape.reply) + 28 <= u64::from(limits.receive)
                && shape.call.data == 0
                && shape.call.tail == 0;
            assert!(!small);
            return;
        }
    };
    let send = u64::from(limits.send);
    let receive = u64::from(limits.receive);

    // The largest Reply: its header returns the chunk.
    let reply_segments = match reply {
        ReplyPlan::Inline | ReplyPlan::Pull => 0,
        ReplyPlan::WriteChunk => {
            assert!(shape.reply_eligible && !shape.protected);
            let data = limits.segments_for(shape.reply.page_offset, shape.reply.data);
            data + u32::from(roundup != 0)
        }
        ReplyPlan::ReplyChunk => {
            assert!(shape.long_reply || !limits.pulled_replies);
            limits.segments_for_all(&shape.reply)
        }
    };
    assert!(reply_segments <= limits.segments);
    if roundup != 0 {
        assert!(limits.room_for_roundup && reply == ReplyPlan::WriteChunk);
        assert_eq!(roundup, shape.reply.data.wrapping_neg() % 4);
        assert!(roundup <= shape.reply.tail);
    }
    let header = encoded_len(0, false, reply, reply_segments);
    let inline = match reply {
        ReplyPlan::Inline => total(&shape.reply),
        ReplyPlan::WriteChunk => u64::from(shape.reply.head) + u64::from(shape.reply.tail),
        ReplyPlan::ReplyChunk => 0,
        // Only a Reply that may not fit inline is pulled.
        ReplyPlan::Pull => {
            assert!(limits.pulled_replies && !shape.long_reply);
            assert!(28 + total(&shape.reply) > receive);
            0
        }
    };
    assert!(header + inline <= receive);

    // The Call: its header has both chunks.
    let (segments, inline) = match call {
        CallPlan::Inline { pull_up } => {
            assert!(!pull_up || total(&shape.call) <= u64::from(limits.pull_up));
            (0, total(&shape.call))
        }
        CallPlan::ReadChunk { position } => {
            assert!(shape.call_eligible && !shape.protected);
            assert_eq!(position, shape.call.head);
            assert_eq!(position % 4, 0);
            let data = &shape.call;
            let rest = data.head + data.tail - shape.roundup();
            // The inline rest is an XDR stream: whole words.
            assert_eq!(rest % 4, 0);
            (
                limits.segments_for(data.page_offset, data.data),
                u64::from(rest),
            )
        }
        CallPlan::PositionZero => (limits.segments_for_all(&shape.call), 0),
    };
    assert!(segments <= limits.segments);
    let long = call == CallPlan::PositionZero;
    let header = encoded_len(segments, long, reply, reply_segments);
    assert!(header + inline <= send);
    // Header, head and tail fit the send buffer.
    let copied = u64::from(shape.call.head) + u64::from(shape.call.tail);
    let buf_len = u64::from(limits.buf_len);
    if !long && buf_len < send && header <= buf_len / 2 {
        assert!(header + copied.min(inline) <= buf_len);
    }
}

/// Bytes in an encoded header with this many segments.
fn encoded_len(reads: u32, long: bool, reply: ReplyPlan, reply_segments: u32) -> u64 {
    let segment = Segment::default();
    let many = |n: u32| (0..n).map(move |_| segment);
    let mut buf = vec![0; 64 + 24 * reads as usize + 16 * reply_segments as usize];
    let mut header = match long {
        true => HeaderWriter::nomsg(&mut buf, 0, 0).unwrap(),
        false => HeaderWriter::msg(&mut buf, 0, 0).unwrap(),
    };
    for segment in many(reads) {
        let position = 0;
        header
            .read_segment(ReadSegment { position, segment })
            .unwrap();
    }
    let mut writes = header.no_more_reads().unwrap();
    if reply == ReplyPlan::WriteChunk {
        writes.write_chunk(many(reply_segments)).unwrap();
    }
    let end = writes.no_more_writes().unwrap();
    let len = match reply {
        ReplyPlan::ReplyChunk => end.reply_chunk(many(reply_segments)),
        _ => end.no_reply_chunk(),
    };
    len.unwrap() as u64
}
