// SPDX-License-Identifier: GPL-2.0

//! What the work requests of a Send Queue do, and how they end.
//!
//! The work requests of a Send Queue take effect at the peer one after the other, and complete one
//! after the other, some time later; but over iWARP, Reads do so apart from all others. Between the
//! two, and until then, the device may access what they name. Each is one step of [`Fabric`].

use super::fabric::*;
use super::*;

impl Fabric {
    /// Has work request number `at` take effect.
    pub(super) fn execute(&mut self, number: u32, at: usize) {
        let qp = self.qp(number);
        let (pd, other) = (qp.pd, qp.other);
        let (op, sges, bytes, sink) = {
            let wqe = &mut qp.send[at];
            (
                wqe.op.clone(),
                wqe.sges.clone(),
                core::mem::take(&mut wqe.bytes),
                wqe.sink,
            )
        };
        let is_message = !matches!(op, Op::Register { .. } | Op::Invalidate { .. } | Op::Drain);
        if let Some(other) = other.filter(|_| is_message) {
            self.first_message(number, other);
        }
        say!(
            "QP {number}: {op:?} of {} bytes",
            length(&sges) + bytes.len()
        );
        let done = match op {
            Op::Register { mr, valid } => {
                self.mrs.get_mut(&mr).expect("a region").valid = Some(valid);
                Ok(Vec::new())
            }
            Op::Invalidate { rkey } => {
                // It may be invalid already: the peer was faster.
                let _ = self.invalidate(pd, rkey);
                Ok(Vec::new())
            }
            Op::Drain => Ok(Vec::new()),
            Op::Send { invalidate } => {
                let other = other.expect("a connected queue pair");
                let mut bytes = gather(&sges, bytes);
                credit_law::message(self, number, other, &mut bytes);
                self.deliver(other, &bytes, invalidate)
            }
            Op::Write { addr, rkey } => {
                let other = other.expect("a connected queue pair");
                let bytes = gather(&sges, bytes);
                let pd = self.qp(other).pd;
                let access = ib_access_flags_IB_ACCESS_REMOTE_WRITE;
                match self.reach(pd, rkey, addr, bytes.len(), access) {
                    Ok(valid) => {
                        store(valid, addr, &bytes);
                        Ok(Vec::new())
                    }
                    Err(why) => Err((ib_wc_status_IB_WC_REM_ACCESS_ERR, why)),
                }
            }
            Op::Immediate { addr, rkey } => {
                let other = other.expect("a connected queue pair");
                self.write_immediate(other, rkey, addr, &bytes)
            }
            Op::StalledRead | Op::StalledSend => unreachable!("it is no step"),
            Op::Read { addr, rkey } => {
                let other = other.expect("a connected queue pair");
                let pd = self.qp(other).pd;
                let sunk = sink.map_or(0, |sink| sink.len as usize);
                let len = length(&sges) + bytes.len() + sunk;
                let access = ib_access_flags_IB_ACCESS_REMOTE_READ;
                let returned = sink.map_or(len, |_| self.returned(other, len));
                match self.reach(pd, rkey, addr, len, access) {
                    Ok(valid) => {
                        let read = load(valid, addr, returned);
                        scatter(&sges, &read);
                        let own = self.qp(number).pd;
                        sink.map_or(Ok(()), |sink| self.fill_sink(own, other, sink, &read))
                            .map(|()| read)
                            .map_err(|why| (ib_wc_status_IB_WC_LOC_PROT_ERR, why))
                    }
                    Err(why) => Err((ib_wc_status_IB_WC_REM_ACCESS_ERR, why)),
                }
            }
        };
        let status = match done {
            Ok(read) => {
                self.qp(number).send[at].bytes = read;
                ib_wc_status_IB_WC_SUCCESS
            }
            Err((status, why)) => {
                say!("QP {number}: denied: {why}");
                let honest = |number: &u32| self.qps.get(number).is_none_or(|qp| qp.honest);
                if honest(&number) && other.as_ref().is_none_or(honest) {
                    self.denied.push(why);
                }
                if let Some(other) = other {
                    self.set_error(other);
                }
                status
            }
        };
        if let Some(wqe) = self.qp(number).send.get_mut(at) {
            wqe.result = Some(status);
        }
    }

    /// Ends work request number `at` of a Send Queue.
    pub(super) fn end(&mut self, number: u32, at: usize, status: ib_wc_status) {
        let reports_all = self.device.reports_all;
        let qp = self.qp(number);
        let wqe = qp.send.remove(at).expect("a work request");
        let Some((send_cq, _)) = qp.cqs else {
            qp.inbox.push_back(match wqe.op {
                Op::Read { .. } => PeerEvent::Read(wqe.bytes),
                _ => PeerEvent::Sent,
            });
            if status != ib_wc_status_IB_WC_SUCCESS {
                self.set_error(number);
            }
            return;
        };
        qp.unretired += 1;
        let reported = wqe.signaled || (reports_all && !wqe.cqe.is_null());
        if !reported && status == ib_wc_status_IB_WC_SUCCESS {
            return;
        }
        let retired = core::mem::take(&mut qp.unretired);
        let mut wc = ib_wc {
            status,
            opcode: 0,
            ..ib_wc::default()
        };
        // SAFETY: A plain member.
        unsafe { *wc.__bindgen_anon_1.wr_cqe.as_mut() = wqe.cqe };
        if status != ib_wc_status_IB_WC_SUCCESS {
            say!("QP {number}: {:?} ends with status {status}", wqe.op);
            if status != ib_wc_status_IB_WC_WR_FLUSH_ERR {
                self.set_error(number);
            }
        }
        let retires = Some((number, retired));
        self.complete(send_cq, Cqe { wc, retires });
    }
}
