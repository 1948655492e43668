// SPDX-License-Identifier: GPL-2.0

//! Events of the server end.

use kernel::str::CStr;

use crate::lib::sockaddr::SockAddr;

use super::{
    events,
    Cid, //
};

// Connections.
events! {
    /// No queue pair for a new connection.
    fn svcrdma_qp_err(peer: Option<SockAddr>, status: isize);
    /// A new connection is over a fabric that cannot carry this protocol.
    fn svcrdma_fabric_err(peer: Option<SockAddr>, status: isize);
    /// A connection could not be accepted.
    fn svcrdma_accept_err(peer: Option<SockAddr>, status: isize);
    /// A queue pair reported an event that ends its connection.
    fn svcrdma_qp_error(event: u32, device: &CStr, peer: Option<SockAddr>);
    /// The device under a connection is to be removed.
    fn svcrdma_device_removal(device: &CStr, peer: Option<SockAddr>);
}

// Calls. `fixed` is xid, version, credits and procedure.
events! {
    /// A Call's header was parsed.
    fn svcrdma_decode_rqst(cid: Cid, fixed: [u32; 4], hdrlen: u32);
    /// A message is too short to be parsed.
    fn svcrdma_decode_short_err(cid: Cid, hdrlen: u32);
    /// A Call has an unknown version.
    fn svcrdma_decode_badvers_err(cid: Cid, fixed: [u32; 4]);
    /// A message is dropped, as the protocol asks.
    fn svcrdma_decode_drop_err(cid: Cid, fixed: [u32; 4]);
    /// A Call has an unknown procedure.
    fn svcrdma_decode_badproc_err(cid: Cid, fixed: [u32; 4]);
    /// A Call's chunk lists are malformed.
    fn svcrdma_decode_parse_err(cid: Cid, fixed: [u32; 4]);
    /// A segment of a Read list.
    fn svcrdma_decode_rseg(
        cid: Cid,
        segno: u32,
        position: u32,
        handle: u32,
        length: u32,
        offset: u64,
    );
    /// A segment of a Write or Reply chunk.
    fn svcrdma_decode_wseg(cid: Cid, segno: u32, handle: u32, length: u32, offset: u64);
    /// A segment as it is returned, with what was written to it.
    fn svcrdma_encode_wseg(cid: Cid, segno: u32, handle: u32, length: u32, offset: u64);
    /// A Call's Read chunks do not fit the pages of a request.
    fn svcrdma_page_overrun_err(cid: Cid, pageno: u32);
}

// Replies.
events! {
    /// The answer is ERR_VERS.
    fn svcrdma_err_vers(xid: u32);
    /// The answer is ERR_CHUNK.
    fn svcrdma_err_chunk(xid: u32);
    /// A result does not fit the chunk that the requester gave for it.
    fn svcrdma_small_wrch_err(cid: Cid, remaining: u32, seg_no: u32, num_segs: u32);
    /// A Reply is copied into the Send buffer.
    fn svcrdma_send_pullup(cid: Cid, hdrlen: u32, msglen: u32);
    /// A Reply could not be sent; its connection ends.
    fn svcrdma_send_err(peer: Option<SockAddr>, xid: u32, status: i32);
}

// Work.
events! {
    /// A Receive is being posted.
    fn svcrdma_post_recv(cid: Cid);
    /// A Reply is being posted; `inv_rkey` is zero where nothing is invalidated remotely.
    fn svcrdma_post_send(cid: Cid, num_sge: u32, inv_rkey: u32);
    /// The Reads that pull a Call's chunks are being posted.
    fn svcrdma_post_read_chunk(cid: Cid, sqecount: i32);
    /// The Writes that fill a Write chunk are being posted.
    fn svcrdma_post_write_chunk(cid: Cid, sqecount: i32);
    /// The Writes that fill a Reply chunk are being posted.
    fn svcrdma_post_reply_chunk(cid: Cid, sqecount: i32);
    /// Receives could not be posted.
    fn svcrdma_rq_post_err(peer: Option<SockAddr>, status: i32);
    /// Memory for Reads or Writes could not be mapped.
    fn svcrdma_dma_map_rw_err(cq_id: u32, offset: u64, handle: u32, nents: u32, status: i32);
    /// A thread waits for room in the Send Queue.
    fn svcrdma_sq_full(cid: Cid, avail: i32, depth: i32);
    /// A thread found room after waiting.
    fn svcrdma_sq_retry(cid: Cid, avail: i32, depth: i32);
    /// Work could not be posted.
    fn svcrdma_sq_post_err(cid: Cid, avail: i32, depth: i32, status: i32);
}

// Completions.
events! {
    /// A Receive completed well.
    fn svcrdma_wc_recv(cid: Cid, received: u32);
    /// A Receive was flushed.
    fn svcrdma_wc_recv_flush(cid: Cid, status: u32, vendor_err: u32);
    /// A Receive failed.
    fn svcrdma_wc_recv_err(cid: Cid, status: u32, vendor_err: u32);
    /// A Send completed well.
    fn svcrdma_wc_send(cid: Cid);
    /// A Send was flushed.
    fn svcrdma_wc_send_flush(cid: Cid, status: u32, vendor_err: u32);
    /// A Send failed.
    fn svcrdma_wc_send_err(cid: Cid, status: u32, vendor_err: u32);
    /// The Reads of a Call completed well, after `latency` microseconds.
    fn svcrdma_wc_read(cid: Cid, totalbytes: u32, latency: i64);
    /// Reads were flushed.
    fn svcrdma_wc_read_flush(cid: Cid, status: u32, vendor_err: u32);
    /// Reads failed.
    fn svcrdma_wc_read_err(cid: Cid, status: u32, vendor_err: u32);
    /// A Call is whole after its Reads.
    fn svcrdma_read_finished(cid: Cid);
}
