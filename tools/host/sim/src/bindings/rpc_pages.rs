// SPDX-License-Identifier: GPL-2.0

//! The pages of an RPC, and its buffers.

use core::ffi::c_void;

use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::rpc::Call;
use super::*;

/// The pages of a Call and of its Reply.
pub(super) struct Pages {
    call: Vec<*mut page>,
    reply: Vec<*mut page>,
    /// The Call is in slab memory.
    slab: bool,
}

impl Pages {
    pub(super) fn new(call: &Call) -> Self {
        let (_, data, _) = (call.encode)(0, 0);
        let pages = |bytes: usize| (0..bytes.div_ceil(PAGE_SIZE)).map(|_| new_page()).collect();
        let pages = Self {
            call: pages(data.len()),
            reply: pages(call.room[1]),
            slab: sched::one_in(8),
        };
        pages.set_slab(pages.slab);
        pages
    }

    fn set_slab(&self, slab: bool) {
        if self.slab {
            self.call
                .iter()
                .for_each(|page| memory::set_slab(*page, slab));
        }
    }

    pub(super) fn store(&self, data: &[u8]) {
        for (page, part) in self.call.iter().zip(data.chunks(PAGE_SIZE)) {
            unsafe { page.cast::<u8>().copy_from(part.as_ptr(), part.len()) };
        }
    }

    pub(super) unsafe fn encode(&mut self, rqst: *mut rpc_rqst, call: &Call, attempt: u32) {
        unsafe {
            let xid = u32::from_be((*rqst).rq_xid);
            let (head, data, tail) = (call.encode)(xid, attempt);
            self.store(&data);
            let start = (*rqst).rq_buffer.cast::<u8>();
            start.copy_from(head.as_ptr(), head.len());
            let end = start.add(head.len());
            end.copy_from(tail.as_ptr(), tail.len());
            let mut snd = xdr_buf::default();
            snd.head[0].iov_base = start.cast();
            snd.head[0].iov_len = head.len();
            snd.tail[0].iov_base = end.cast();
            snd.tail[0].iov_len = tail.len();
            snd.pages = self.call.as_mut_ptr();
            snd.page_len = data.len() as u32;
            snd.len = (head.len() + data.len() + tail.len()) as u32;
            snd.buflen = snd.len;
            snd.flags = if call.is_write { XDRBUF_WRITE } else { 0 };
            (*rqst).rq_snd_buf = snd;
            let [head, data, tail] = call.room;
            let start = (*rqst).rq_rbuffer.cast::<u8>();
            start.write_bytes(0xa7, head + tail);
            let mut rcv = xdr_buf::default();
            rcv.head[0].iov_base = start.cast();
            rcv.head[0].iov_len = head;
            rcv.tail[0].iov_base = start.add(head).cast();
            rcv.tail[0].iov_len = tail;
            rcv.pages = self.reply.as_mut_ptr();
            rcv.page_len = data as u32;
            rcv.buflen = (head + data + tail) as u32;
            rcv.flags = if call.is_read { XDRBUF_READ } else { 0 };
            (*rqst).rq_rcv_buf = rcv;
        }
    }

    /// The Reply, from head, pages and tail.
    pub(super) unsafe fn reply(&self, rqst: *mut rpc_rqst, call: &Call) -> Vec<u8> {
        unsafe {
            let buf = &(*rqst).rq_private_buf;
            let parts = buf.head[0].iov_len + buf.page_len as usize + buf.tail[0].iov_len;
            if buf.buflen as usize != parts {
                sched::fail("the buffer of a Reply has another length than its parts");
            }
            let mut bytes = Vec::new();
            let linear = |part: &kvec| {
                let base: *const c_void = part.iov_base;
                core::slice::from_raw_parts(base.cast::<u8>(), part.iov_len).to_vec()
            };
            bytes.extend(linear(&buf.head[0]));
            let mut left = buf.page_len as usize;
            for page in &self.reply {
                let count = left.min(PAGE_SIZE);
                bytes.extend(core::slice::from_raw_parts(page.cast::<u8>(), count));
                left -= count;
            }
            if call.room[2] > 0 {
                bytes.extend(linear(&buf.tail[0]));
            }
            bytes.truncate(buf.len as usize);
            bytes
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.set_slab(false);
        for page in self.call.drain(..).chain(self.reply.drain(..)) {
            unsafe { rpcrdma_put_page(page) };
        }
    }
}
