// SPDX-License-Identifier: GPL-2.0

//! Trace events of the server.

use core::ffi::CStr;

use crate::lib::sockaddr::SockAddr;

use super::{
    events,
    Cid, //
};

// Connections.
events! {
    /// The QP of a new connection could not be created.
    fn svcrdma_qp_err(peer: Option<SockAddr>, status: isize);
    /// The fabric of a new connection does not support this protocol.
    fn svcrdma_fabric_err(peer: Option<SockAddr>, status: isize);
    /// A connection could not be accepted.
    fn svcrdma_accept_err(peer: Option<SockAddr>, status: isize);
    /// A QP has reported an event that ends its connection.
    fn svcrdma_qp_error(event: u32, device: &CStr, peer: Option<SockAddr>);
    /// The device under a connection is to be removed.
    fn svcrdma_device_removal(device: &CStr, peer: Option<SockAddr>);
}

// Calls. `fixed` are XID, version, credits and procedure.
events! {
    /// A Call's header was parsed.
    fn svcrdma_decode_rqst(cid: Cid, fixed: [u32; 4], hdrlen: u32);
    /// A message is too short to be parsed.
    fn svcrdma_decode_short_err(cid: Cid, hdrlen: u32);
    /// A Call has an unknown version.
    fn svcrdma_decode_badvers_err(cid: Cid, fixed: [u32; 4]);
    /// A message is dropped, as the protocol requires.
    fn svcrdma_decode_drop_err(cid: Cid, fixed: [u32; 4]);
    /// A Call has an unknown procedure.
    fn svcrdma_decode_badproc_err(cid: Cid, fixed: [u32; 4]);
    /// A Call's chunk lists are malformed.
    fn svcrdma_decode_parse_err(cid: Cid, fixed: [u32; 4]);
    /// A segment of a Read list was parsed.
    fn svcrdma_decode_rseg(
        cid: Cid,
        segno: u32,
        position: u32,
        handle: u32,
        length: u32,
        offset: u64,
    );
    /// A segment of a Write chunk or Reply chunk was parsed.
    fn svcrdma_decode_wseg(cid: Cid, segno: u32, handle: u32, length: u32, offset: u64);
    /// A segment is returned, with the number of bytes written to it.
    fn svcrdma_encode_wseg(cid: Cid, segno: u32, handle: u32, length: u32, offset: u64);
    /// A Call's Read chunks exceed the pages of a request.
    fn svcrdma_page_overrun_err(cid: Cid, pageno: u32);
}

// Replies.
events! {
    /// An ERR_VERS is being sent.
    fn svcrdma_err_vers(xid: u32);
    /// An ERR_CHUNK is being sent.
    fn svcrdma_err_chunk(xid: u32);
    /// A result does not fit into the chunk that the client has provided for it.
    fn svcrdma_small_wrch_err(cid: Cid, remaining: u32, seg_no: u32, num_segs: u32);
    /// A Reply is copied into the Send buffer.
    fn svcrdma_send_pullup(cid: Cid, hdrlen: u32, msglen: u32);
    /// A Reply could not be sent. Its connection ends.
    fn svcrdma_send_err(peer: Option<SockAddr>, xid: u32, status: i32);
}

// Work requests.
events! {
    /// A Receive is being posted.
    fn svcrdma_post_recv(cid: Cid);
    /// A Reply is being posted. `inv_rkey` is zero unless it is a Send With Invalidate.
    fn svcrdma_post_send(cid: Cid, num_sge: u32, inv_rkey: u32);
    /// The RDMA Reads of a Call's Read chunks are being posted.
    fn svcrdma_post_read_chunk(cid: Cid, sqecount: i32);
    /// The RDMA Writes of a Write chunk are being posted.
    fn svcrdma_post_write_chunk(cid: Cid, sqecount: i32);
    /// The RDMA Writes of a Reply chunk are being posted.
    fn svcrdma_post_reply_chunk(cid: Cid, sqecount: i32);
    /// Receives could not be posted.
    fn svcrdma_rq_post_err(peer: Option<SockAddr>, status: i32);
    /// A page of a Reply could not be mapped.
    fn svcrdma_dma_map_err(cid: Cid, dma_addr: u64, length: u32);
    /// The memory of an RDMA Read or Write could not be mapped.
    fn svcrdma_dma_map_rw_err(cq_id: u32, offset: u64, handle: u32, nents: u32, status: i32);
    /// A message, or the RDMA Reads of a Call, has to wait for Send Queue entries.
    fn svcrdma_sq_full(cid: Cid, avail: i32, depth: i32);
    /// A message, or the RDMA Reads of a Call, has got Send Queue entries after a wait.
    fn svcrdma_sq_retry(cid: Cid, avail: i32, depth: i32);
    /// Work requests could not be posted.
    fn svcrdma_sq_post_err(cid: Cid, avail: i32, depth: i32, status: i32);
}

// Completions.
events! {
    /// A Receive succeeded.
    fn svcrdma_wc_recv(cid: Cid, received: u32);
    /// A Receive was flushed.
    fn svcrdma_wc_recv_flush(cid: Cid, status: u32, vendor_err: u32);
    /// A Receive failed.
    fn svcrdma_wc_recv_err(cid: Cid, status: u32, vendor_err: u32);
    /// A Send succeeded.
    fn svcrdma_wc_send(cid: Cid);
    /// A Send was flushed.
    fn svcrdma_wc_send_flush(cid: Cid, status: u32, vendor_err: u32);
    /// A Send failed.
    fn svcrdma_wc_send_err(cid: Cid, status: u32, vendor_err: u32);
    /// RDMA Writes of a Reply were flushed.
    fn svcrdma_wc_write_flush(cid: Cid, status: u32, vendor_err: u32);
    /// RDMA Writes of a Reply failed.
    fn svcrdma_wc_write_err(cid: Cid, status: u32, vendor_err: u32);
    /// The RDMA Reads of a Call succeeded, after `latency` microseconds.
    fn svcrdma_wc_read(cid: Cid, totalbytes: u32, latency: i64);
    /// RDMA Reads were flushed.
    fn svcrdma_wc_read_flush(cid: Cid, status: u32, vendor_err: u32);
    /// RDMA Reads failed.
    fn svcrdma_wc_read_err(cid: Cid, status: u32, vendor_err: u32);
    /// A Call is complete after its RDMA Reads.
    fn svcrdma_read_finished(cid: Cid);
}
