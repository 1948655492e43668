// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 8: security; and what follows from it for handles.

use crate::support::*;
use rpcrdma_core::engine::call::plan;
use rpcrdma_core::engine::call::CallPlan;
use rpcrdma_core::engine::call::ReplyPlan;
use rpcrdma_core::engine::fence::invalidated;
use rpcrdma_core::engine::fence::remaining;
use rpcrdma_core::engine::fence::ForeignHandle;
use rpcrdma_core::engine::reply::Form;
use rpcrdma_core::engine::reply::Payload;
use rpcrdma_core::engine::reply::Reply;
use rpcrdma_core::engine::reply::ReplyShape;

#[test]
fn r8166_8_2_2_3_1_requester_reduces_nothing_under_integrity() {
    let mut shape = write_call(20_000);
    shape.protected = true;
    assert_eq!(plan(&shape, &limits()).unwrap().0, CallPlan::PositionZero);
    let mut shape = read_call(20_000);
    shape.protected = true;
    assert_eq!(plan(&shape, &limits()).unwrap().1, ReplyPlan::ReplyChunk);
}

#[test]
fn r8166_8_2_2_3_1_responder_reduces_nothing_under_integrity() {
    let write = hloo(1, 8192, 0x1000);
    let reply = hloo(2, 8192, 0x2000);
    let call = message(0, &[&[0, 1, 1], &write, &[0, 1, 1], &reply, &rpc(CALL)]);
    let chunks = call_at_server(&call).chunks;
    let results = [Payload {
        offset: 100,
        length: 5_000,
    }];
    for (threshold, form) in [(4096, Form::ReplyChunk), (8192, Form::Inline)] {
        let shape = ReplyShape {
            length: 5_200,
            protected: true,
            threshold,
        };
        let reply = Reply::plan(chunks, &results, &shape).unwrap();
        assert_eq!(reply.form(), form);
        assert_eq!((reply.by_write(), reply.left()), (0, 5_200));
        assert_eq!(reply.writes().count(), 0);
        assert_eq!(reply.runs().collect::<Vec<_>>(), [(0, 5_200)]);
    }
}

#[test]
fn r8166_4_4_1_1_every_handle_is_accounted_for() {
    let exposed = [11, 12, 13];
    assert_eq!(invalidated(exposed, None), Ok(None));
    assert_eq!(remaining(exposed, None).collect::<Vec<_>>(), exposed);
    for (index, handle) in exposed.into_iter().enumerate() {
        assert_eq!(invalidated(exposed, Some(handle)), Ok(Some(index)));
        let left: Vec<_> = remaining(exposed, Some(handle)).collect();
        assert_eq!(left.len(), 2);
        assert!(!left.contains(&handle));
    }
    assert_eq!(
        invalidated(exposed, Some(14)),
        Err(ForeignHandle { handle: 14 })
    );
    assert_eq!(invalidated([], Some(0)), Err(ForeignHandle { handle: 0 }));
}
