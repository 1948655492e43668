// SPDX-License-Identifier: GPL-2.0

//! Trace events of the client.

use core::ffi::CStr;

use crate::lib::sockaddr::SockAddr;

use super::{
    events,
    ChunkType,
    Cid,
    Mr,
    Task, //
};

// Connections.
events! {
    /// SUNRPC's fault injection ends the connection.
    fn xprtrdma_op_inject_dsc(peer: Option<SockAddr>);
    /// SUNRPC asks for a connection. The attempt begins after `delay` jiffies.
    fn xprtrdma_op_connect(peer: Option<SockAddr>, delay: usize);
    /// SUNRPC sets the timeouts, in jiffies.
    fn xprtrdma_op_set_cto(peer: Option<SockAddr>, connect: usize, reconnect: usize);
    /// An attempt to connect has ended.
    fn xprtrdma_connect(peer: Option<SockAddr>, rc: i32, connect_status: i32);
    /// A connection is being closed.
    fn xprtrdma_disconnect(peer: Option<SockAddr>, rc: i32, connect_status: i32);
    /// A connection is established: the negotiated inline thresholds, and the payloads that fit.
    fn xprtrdma_inline_thresh(
        src: Option<SockAddr>,
        dst: Option<SockAddr>,
        inline_send: u32,
        inline_recv: u32,
        max_send: u32,
        max_recv: u32,
    );
    /// The device under a connection is to be removed.
    fn xprtrdma_device_removal(device: &CStr, peer: Option<SockAddr>);
}

// Calls. `xdr` are the lengths of head, pages and tail.
events! {
    /// A Call's header was built. `call` and `reply` tell how the two are conveyed.
    fn xprtrdma_marshal(
        task: Task,
        xid: u32,
        hdrlen: u32,
        xdr: [u32; 3],
        call: ChunkType,
        reply: ChunkType,
    );
    /// A Call's header could not be built.
    fn xprtrdma_marshal_failed(task: Task, xid: u32, ret: i32);
    /// A Call's Send could not be prepared.
    fn xprtrdma_prepsend_failed(task: Task, xid: u32, ret: i32);
    /// A segment of a Read chunk was encoded.
    fn xprtrdma_chunk_read(task: Task, position: u32, mr: &Mr, is_last: bool);
    /// A segment of a Write chunk was encoded.
    fn xprtrdma_chunk_write(task: Task, mr: &Mr, is_last: bool);
    /// A segment of a Reply chunk was encoded.
    fn xprtrdma_chunk_reply(task: Task, mr: &Mr, is_last: bool);
    /// A Call is being posted.
    fn xprtrdma_post_send(task: Task, cid: Cid, num_sge: u32, signaled: bool);
    /// A Call could not be posted.
    fn xprtrdma_post_send_err(task: Task, cq_id: u32, rc: i32);
}

// Backchannel Calls.
events! {
    /// A callback service was registered. `reqs` backchannel Calls may be outstanding.
    fn xprtrdma_cb_setup(peer: Option<SockAddr>, reqs: u32);
    /// A backchannel Call has arrived, and goes to the callback service.
    fn xprtrdma_cb_call(peer: Option<SockAddr>, xid: u32);
    /// The Reply to a backchannel Call is being sent.
    fn xprtrdma_cb_reply(peer: Option<SockAddr>, xid: u32);
}

// Replies.
events! {
    /// A Reply was matched to this task. It grants `credits`.
    fn xprtrdma_reply(task: Task, xid: u32, credits: u32);
    /// A Reply has an unknown version.
    fn xprtrdma_reply_vers_err(peer: Option<SockAddr>, xid: u32, version: u32, procedure: u32);
    /// A Reply matches no outstanding Call.
    fn xprtrdma_reply_rqst_err(peer: Option<SockAddr>, xid: u32, version: u32, procedure: u32);
    /// A message is too short to be parsed.
    fn xprtrdma_reply_short_err(peer: Option<SockAddr>, xid: u32, version: u32, procedure: u32);
    /// A Reply's header is malformed.
    fn xprtrdma_reply_hdr_err(peer: Option<SockAddr>, xid: u32, version: u32, procedure: u32);
    /// The server supports other versions of the protocol.
    fn xprtrdma_err_vers(task: Task, xid: u32, min: u32, max: u32);
    /// The server could not use the chunks of a Call, or could not parse its header.
    fn xprtrdma_err_chunk(task: Task, xid: u32);
    /// The server reports an error with an unknown code. The message is dropped.
    fn xprtrdma_err_unrecognized(task: Task, xid: u32, code: u32);
    /// A segment that a Reply returns, with the number of bytes written.
    fn xprtrdma_decode_seg(handle: u32, length: u32, offset: u64);
    /// Bytes of a Reply were copied from the Receive buffer to the RPC's buffers.
    fn xprtrdma_fixup(task: Task, fixup: u32, xdr: [u32; 3]);
}

// MRs.
events! {
    /// MRs were allocated.
    fn xprtrdma_createmrs(peer: Option<SockAddr>, count: u32);
    /// A Call waits for an MR.
    fn xprtrdma_nomrs_err(peer: Option<SockAddr>, task: Task);
    /// Memory was mapped for a Call.
    fn xprtrdma_mr_map(task: Task, mr: &Mr);
    /// An MR is being registered.
    fn xprtrdma_mr_fastreg(task: Task, mr: &Mr);
    /// An MR is being invalidated by the client.
    fn xprtrdma_mr_localinv(task: Task, mr: &Mr);
    /// The server has invalidated an MR.
    fn xprtrdma_mr_reminv(task: Task, mr: &Mr);
    /// Memory was unmapped.
    fn xprtrdma_mr_unmap(mr: &Mr);
    /// An MR was allocated, or could not be.
    fn xprtrdma_frwr_alloc(mr_id: u32, rc: i32);
    /// An MR could not be released.
    fn xprtrdma_frwr_dereg(mr: &Mr, rc: i32);
    /// Memory could not be mapped for DMA.
    fn xprtrdma_frwr_sgerr(mr_id: u32, addr: u64, direction: u32, nents: i32);
    /// An MR could not cover all memory that was mapped.
    fn xprtrdma_frwr_maperr(mr_id: u32, addr: u64, direction: u32, num_mapped: i32, nents: i32);
    /// The MRs of a Call that ended without a Reply are being invalidated.
    fn xprtrdma_mrs_zap(task: Task);
    /// Invalidations could not be posted.
    fn xprtrdma_post_linv_err(task: Task, status: i32);
    /// A buffer could not be mapped for DMA.
    fn xprtrdma_dma_maperr(addr: u64);
}

// Work requests.
events! {
    /// `count` Receives were posted. `posted` are outstanding now.
    fn xprtrdma_post_recvs(peer: Option<SockAddr>, cq_id: u32, count: u32, posted: i32);
    /// Receives could not be posted.
    fn xprtrdma_post_recvs_err(peer: Option<SockAddr>, cq_id: u32, status: i32);
    /// A Send completed.
    fn xprtrdma_wc_send(cid: Cid, status: u32, vendor_err: u32);
    /// A Receive completed.
    fn xprtrdma_wc_receive(cid: Cid, status: u32, vendor_err: u32, received: u32);
    /// A registration failed.
    fn xprtrdma_wc_fastreg(cid: Cid, status: u32, vendor_err: u32);
    /// An invalidation completed; others of the same RPC follow.
    fn xprtrdma_wc_li(cid: Cid, status: u32, vendor_err: u32);
    /// The last invalidation of an RPC completed. The RPC may end.
    fn xprtrdma_wc_li_done(cid: Cid, status: u32, vendor_err: u32);
}
