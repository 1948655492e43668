// SPDX-License-Identifier: GPL-2.0

//! What arrives at a queue pair, and takes a Receive.

use kernel::ffi::{c_int, c_uint};

use super::fabric::*;
use super::*;

impl Fabric {
    /// Delivers a message.
    pub(super) fn deliver(
        &mut self,
        to: u32,
        bytes: &[u8],
        invalidate: Option<u32>,
    ) -> Result<Vec<u8>, (ib_wc_status, String)> {
        let pd = self.qp(to).pd;
        if let Some(rkey) = invalidate {
            self.invalidate(pd, rkey)
                .map_err(|why| (ib_wc_status_IB_WC_REM_ACCESS_ERR, why))?;
        }
        let qp = self.qp(to);
        let Some((_, recv_cq)) = qp.cqs else {
            qp.recv.pop_front();
            qp.inbox.push_back(PeerEvent::Received {
                bytes: bytes.to_vec(),
                invalidated: invalidate,
            });
            return Ok(Vec::new());
        };
        let recv = qp.recv.pop_front().expect("a Receive");
        let mut wc = ib_wc {
            opcode: ib_wc_opcode_IB_WC_RECV,
            byte_len: bytes.len() as c_uint,
            ..ib_wc::default()
        };
        // SAFETY: Plain members.
        unsafe {
            *wc.__bindgen_anon_1.wr_cqe.as_mut() = recv.cqe;
            if let Some(rkey) = invalidate {
                wc.wc_flags = ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int;
                *wc.ex.invalidate_rkey.as_mut() = rkey;
            }
        }
        if bytes.len() > recv.sge.1 as usize {
            wc.status = ib_wc_status_IB_WC_LOC_LEN_ERR;
            self.complete(recv_cq, Cqe { wc, retires: None });
            self.set_error(to);
            return Err((
                ib_wc_status_IB_WC_REM_ACCESS_ERR,
                "a message is too long".into(),
            ));
        }
        dma::device_writes(recv.sge.0, bytes);
        self.complete(recv_cq, Cqe { wc, retires: None });
        Ok(Vec::new())
    }

    /// Writes `bytes`, which may be none, and completes a Receive, whose buffer is not used.
    pub(super) fn write_immediate(
        &mut self,
        to: u32,
        rkey: u32,
        addr: u64,
        bytes: &[u8],
    ) -> Result<Vec<u8>, (ib_wc_status, String)> {
        let pd = self.qp(to).pd;
        if !bytes.is_empty() {
            let access = ib_access_flags_IB_ACCESS_REMOTE_WRITE;
            let valid = self
                .reach(pd, rkey, addr, bytes.len(), access)
                .map_err(|why| (ib_wc_status_IB_WC_REM_ACCESS_ERR, why))?;
            store(valid, addr, bytes);
        }
        let qp = self.qp(to);
        let recv = qp.recv.pop_front().expect("a Receive");
        let (_, recv_cq) = qp.cqs.expect("a queue pair of the module");
        let mut wc = ib_wc {
            // IB_WC_RECV_RDMA_WITH_IMM
            opcode: ib_wc_opcode_IB_WC_RECV + 1,
            byte_len: bytes.len() as c_uint,
            ..ib_wc::default()
        };
        // SAFETY: A plain member.
        unsafe { *wc.__bindgen_anon_1.wr_cqe.as_mut() = recv.cqe };
        self.complete(recv_cq, Cqe { wc, retires: None });
        Ok(Vec::new())
    }

    /// Flushes a Receive.
    pub(super) fn flush_recv(&mut self, number: u32) {
        let qp = self.qp(number);
        let Some(recv) = qp.recv.pop_front() else {
            return;
        };
        let Some((_, recv_cq)) = qp.cqs else {
            return;
        };
        let mut wc = ib_wc {
            status: ib_wc_status_IB_WC_WR_FLUSH_ERR,
            opcode: ib_wc_opcode_IB_WC_RECV,
            ..ib_wc::default()
        };
        // SAFETY: A plain member.
        unsafe { *wc.__bindgen_anon_1.wr_cqe.as_mut() = recv.cqe };
        self.complete(recv_cq, Cqe { wc, retires: None });
    }
}
