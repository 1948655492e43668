// SPDX-License-Identifier: GPL-2.0

//! Limits are exact: the code accepts a value at the limit, and refuses the next one.

use crate::support::*;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::Plan;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::call::TooBig;
use rpcrdma_core::engine::requester::match_reply::locate;
use rpcrdma_core::engine::requester::match_reply::Mismatch;
use rpcrdma_core::engine::requester::match_reply::OfferedChunks;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::BadReads;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Layout;
use rpcrdma_core::wire::Body;
use rpcrdma_core::wire::Header;
use rpcrdma_core::wire::ReadList;
use rpcrdma_core::wire::Segment;
use rpcrdma_core::wire::MIN_LEN;

/// The Read list of a message of either direction.
fn reads(bytes: &[u8]) -> ReadList<'_> {
    match Header::decode(bytes).unwrap().body {
        Body::Msg { chunks, .. } | Body::NoMsg { chunks } => chunks.reads,
        other => panic!("{other:?}"),
    }
}

fn bounds(message: u32, chunks: u32, segments: u32) -> Bounds {
    Bounds {
        message,
        max_inline: 4096,
        chunks,
        segments,
    }
}

#[test]
fn reassembly_limits_are_exact() {
    let item = |position, length| (position, segment(1, length, 0));
    let call = msg_with_reads(&[item(8, 10), item(8, 10), item(40, 5)], CALL, 8);
    let list = reads(&call);
    // 32 bytes inline, 20 and 8 in the chunks with roundup.
    let plan = |bounds| Assembly::plan(Some(32), list, &bounds).map(|plan| plan.unwrap().layout());
    assert_eq!(plan(bounds(60, 2, 3)), Ok(Layout::Whole { length: 60 }));
    for bounds in [bounds(59, 2, 3), bounds(60, 1, 3), bounds(60, 2, 2)] {
        assert_eq!(plan(bounds), Err(BadReads::TooComplex));
    }
    let long = nomsg_with_reads(&[item(0, 40)]);
    let plan = |bounds| Assembly::plan(None, reads(&long), &bounds).map(|plan| plan.is_some());
    assert_eq!(plan(bounds(40, 1, 1)), Ok(true));
    assert_eq!(plan(bounds(39, 1, 1)), Err(BadReads::TooComplex));
    assert_eq!(plan(bounds(40, 0, 1)), Err(BadReads::TooComplex));
    assert_eq!(plan(bounds(40, 1, 0)), Err(BadReads::TooComplex));
    // The Position-zero chunk counts as a chunk.
    let long = nomsg_with_reads(&[item(0, 40), item(8, 4)]);
    let plan = |bounds| Assembly::plan(None, reads(&long), &bounds).map(|plan| plan.is_some());
    assert_eq!(plan(bounds(44, 2, 2)), Ok(true));
    assert_eq!(plan(bounds(44, 1, 2)), Err(BadReads::TooComplex));
}

#[test]
fn long_inline_part_makes_the_layout_whole() {
    let call = msg_with_reads(&[(8, segment(1, 10, 0))], CALL, 8);
    let plan = |inline, max_inline| {
        let bounds = Bounds {
            max_inline,
            ..bounds(1 << 16, 8, 8)
        };
        Assembly::plan(Some(inline), reads(&call), &bounds).map(|plan| plan.unwrap().layout())
    };
    let in_recv_buf = Layout::DataItem {
        head: 8,
        data: 12,
        tail: 4088,
    };
    assert_eq!(plan(4096, 4096), Ok(in_recv_buf));
    assert_eq!(in_recv_buf.length(), 4108);
    // Two bytes of inline roundup.
    assert_eq!(plan(4098, 4096), Ok(in_recv_buf));
    let plan_message = |message| {
        let plan = Assembly::plan(Some(4098), reads(&call), &bounds(message, 8, 8));
        plan.map(|plan| plan.unwrap().layout())
    };
    assert_eq!(plan_message(4108), Ok(in_recv_buf));
    assert_eq!(plan_message(4107), Err(BadReads::TooComplex));
    assert_eq!(plan(4100, 4096), Ok(Layout::Whole { length: 4112 }));
    assert_eq!(Layout::Whole { length: 4112 }.length(), 4112);
}

#[test]
fn position_zero_chunk_in_long_calls_only() {
    let all = bounds(4096, 8, 8);
    let zero = msg_with_reads(&[(0, segment(1, 64, 0))], CALL, 8);
    assert_eq!(
        Assembly::plan(Some(32), reads(&zero), &all).unwrap_err(),
        BadReads::PositionZero
    );
    for reads_of_call in [
        &[][..],
        &[(0, segment(1, 0, 0))],
        &[(0, segment(1, 0, 0)), (4, segment(1, 8, 0))],
        &[(4, segment(1, 8, 0))],
    ] {
        let none = nomsg_with_reads(reads_of_call);
        assert_eq!(
            Assembly::plan(None, reads(&none), &all).unwrap_err(),
            BadReads::PositionZero
        );
    }
}

#[test]
fn highest_position_is_refused() {
    // The search for the next chunk ends after the highest possible Position.
    let call = msg_with_reads(&[(0xffff_fffc, segment(1, 4, 0))], CALL, 8);
    assert_eq!(
        Assembly::plan(Some(32), reads(&call), &bounds(u32::MAX, 8, 8)).unwrap_err(),
        BadReads::Position
    );
}

#[test]
fn segment_counts_are_exact() {
    let limits = CallLimits {
        segment_pages: 2,
        ..limits()
    };
    for (offset, len, segments) in [
        (0, 0, 0),
        (0, 1, 1),
        (0, 4096, 1),
        (0, 4097, 1),
        (0, 8192, 1),
        (0, 8193, 2),
        (1, 8192, 2),
        (4095, 1, 1),
        (4095, 4097, 1),
        (4095, 4098, 2),
        // The offset counts modulo the page size.
        (4096, 8192, 1),
        (u32::MAX, 1, 1),
    ] {
        assert_eq!(limits.segments_for(offset, len), segments, "{offset} {len}");
    }
    assert!(limits.segments_for(4095, u32::MAX) > 1 << 18);
    // Segments of at most one page, however that is said.
    for segment_pages in [0, 1] {
        let limits = CallLimits {
            segment_pages,
            ..limits
        };
        assert_eq!(limits.segments_for(1, 8192), 3);
    }
}

#[test]
fn plan_uses_all_segments_and_sges() {
    let pages = |data, segments, sges| {
        let limits = CallLimits {
            segments,
            segment_pages: 1,
            sges,
            ..limits()
        };
        plan(&write_call(data), &limits).map(|plan| plan.call)
    };
    assert_eq!(
        pages(16_384, 4, 19),
        Ok(CallPlan::ReadChunk { position: 160 })
    );
    assert_eq!(pages(16_384, 3, 19), Err(TooBig));
    // SGEs: header, head, one page.
    assert_eq!(pages(2_000, 4, 3), Ok(CallPlan::Inline { pull_up: false }));
    assert_eq!(
        pages(2_000, 4, 2),
        Ok(CallPlan::ReadChunk { position: 160 })
    );
    // SGEs: header, head, one page, tail.
    assert_eq!(pages(2_001, 4, 4), Ok(CallPlan::Inline { pull_up: false }));
    assert_eq!(
        pages(2_001, 4, 3),
        Ok(CallPlan::ReadChunk { position: 160 })
    );
    // A copied Call needs no SGEs for pages.
    let copied = |pull_up| {
        let limits = CallLimits {
            pull_up,
            sges: 2,
            ..limits()
        };
        plan(&write_call(2_000), &limits).unwrap().call
    };
    assert_eq!(copied(2_160), CallPlan::Inline { pull_up: true });
    assert_eq!(copied(2_159), CallPlan::ReadChunk { position: 160 });
}

#[test]
fn copied_bytes_fit_the_send_buffer() {
    // The threshold is larger than the send buffer, which receives header, head and tail.
    let limits = CallLimits {
        send: 65_536,
        buf_len: 4096,
        ..limits()
    };
    let call = |head, data| {
        let mut shape = write_call(data);
        shape.call.head = head;
        plan(&shape, &limits).unwrap().call
    };
    let header = MIN_LEN as u32;
    assert_eq!(call(4096 - header, 0), CallPlan::Inline { pull_up: false });
    assert_eq!(call(4096 - header + 4, 0), CallPlan::PositionZero);
    // The data item is gathered, unless head and header would not fit the send buffer.
    assert_eq!(call(160, 20_000), CallPlan::Inline { pull_up: false });
    // With half of it free, the header fits.
    assert_eq!(call(2_048, 20_000), CallPlan::Inline { pull_up: false });
    assert_eq!(call(2_052, 20_000), CallPlan::ReadChunk { position: 2_052 });
    assert_eq!(call(3_000, 20_000), CallPlan::ReadChunk { position: 3_000 });
    assert_eq!(call(4_060, 20_000), CallPlan::PositionZero);
}

#[test]
fn nothing_to_pull_up_in_a_head_alone() {
    let limits = CallLimits {
        pull_up: 1000,
        ..limits()
    };
    for (data, tail, pull_up) in [(0, 0, false), (4, 0, true), (0, 4, true), (4, 4, true)] {
        let mut shape = write_call(data);
        shape.call.tail = tail;
        let call = plan(&shape, &limits).unwrap().call;
        assert_eq!(call, CallPlan::Inline { pull_up }, "{data} {tail}");
    }
}

#[test]
fn replies_that_may_be_long() {
    assert!(ReplyPlan::ReplyChunk.may_be_long());
    assert!(ReplyPlan::Pull.may_be_long());
    assert!(!ReplyPlan::Inline.may_be_long());
    assert!(!ReplyPlan::WriteChunk.may_be_long());
}

#[test]
fn long_call_header_counts() {
    // A header with 41 Read segments has 28 + 984 bytes. 1024 bytes have no room for another chunk.
    let limits = CallLimits {
        send: 1024,
        receive: 4096,
        segments: 64,
        segment_pages: 1,
        ..limits()
    };
    let mut shape = write_call(40 * 4096);
    shape.call_eligible = false;
    shape.call.head = 1;
    shape.call.tail = 0;
    assert_eq!(limits.segments_for_all(&shape.call), 41);
    assert_eq!(
        plan(&shape, &limits),
        Ok(Plan {
            call: CallPlan::PositionZero,
            reply: ReplyPlan::Inline,
            roundup: 0,
        })
    );
    shape.reply.head = 5000;
    assert_eq!(plan(&shape, &limits), Err(TooBig));
    shape.reply.head = 100;
    shape.call.data += 1;
    assert_eq!(plan(&shape, &limits), Err(TooBig));
}

#[test]
fn overflowing_lengths_are_too_big() {
    let mut shape = write_call(0);
    shape.call.head = u32::MAX;
    shape.call.data = u32::MAX;
    assert_eq!(plan(&shape, &limits()), Err(TooBig));
    let mut shape = read_call(0);
    shape.reply.tail = u32::MAX;
    shape.reply.data = u32::MAX;
    assert_eq!(plan(&shape, &limits()), Err(TooBig));
    assert_eq!(plan(&write_call(u32::MAX - 1000), &limits()), Err(TooBig));
}

#[test]
fn hole_behind_an_empty_segment_is_a_mismatch() {
    let own = [(1, 100), (2, 0), (3, 300)].map(|(n, length)| segment(n, length, 0));
    let offered = OfferedChunks {
        write: own,
        reply: NO_CHUNK,
    };
    let mut body = vec![0, 1, 3];
    for Segment { handle, length, .. } in own {
        body.extend(hloo(handle, if handle == 1 { 50 } else { length }, 0));
    }
    body.extend([0, 0]);
    let bytes = message(0, &[&body, &rpc(REPLY)]);
    assert_eq!(locate(&reply_at_client(&bytes), offered), Err(Mismatch));
}
