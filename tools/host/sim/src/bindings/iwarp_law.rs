// SPDX-License-Identifier: GPL-2.0

//! What only iWARP asks for: the sink of an RDMA Read is registered for writes of the peer (RFC
//! 5040 Section 5.1), and the end that has accepted a connection sends nothing before the other
//! (RFC 5044 Section 7.1).

use kernel::sched;

use super::fabric::*;
use super::*;

impl Fabric {
    /// Stores what was read.
    pub(super) fn fill_sink(&mut self, pd: u32, sink: Sink, bytes: &[u8]) {
        let access = ib_access_flags_IB_ACCESS_REMOTE_WRITE;
        match self.reach(pd, sink.stag, sink.addr, bytes.len(), access) {
            Ok(valid) => store(valid, sink.addr, bytes),
            Err(why) => sched::fail(format_args!("the sink of a Read: {why}")),
        }
    }

    /// Whether a Read that is posted has its sink in these bytes.
    pub(super) fn is_sink(&self, sink: Sink, overlaps: impl Fn(&(u64, u32)) -> bool) -> bool {
        let mr = self.mrs.get(&(sink.stag >> 8));
        mr.is_some_and(|mr| mr.segments.iter().any(overlaps))
    }

    /// A queue pair sends its first message, or another one, to `other`.
    pub(super) fn first_message(&mut self, number: u32, other: u32) {
        if !self.device.iwarp {
            return;
        }
        let qp = self.qp(number);
        if qp.accepted && !qp.heard {
            sched::fail(format_args!(
                "QP {number} has accepted a connection, and sends first"
            ));
        }
        self.qp(other).heard = true;
    }
}
