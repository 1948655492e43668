// SPDX-License-Identifier: GPL-2.0

//! What only iWARP asks for: the sink of an RDMA Read is registered for writes of the peer (RFC
//! 5040 Section 5.1), which may end the Read early, and the end that has accepted a connection
//! sends nothing before the other (RFC 5044 Section 7.1). The CM of the accepting end waits for
//! that first message before it ends the connection.

use kernel::sched;

use super::cm::*;
use super::fabric::*;
use super::*;

impl Fabric {
    /// Stores what was read. If that is less than the sink, the rest of the sink becomes a part of
    /// the Call: it must not hold an earlier message. The Read invalidates its region, as
    /// `IB_WR_RDMA_READ_WITH_INV`.
    ///
    /// # Errors
    ///
    /// The peer `other` has invalidated the sink, whose STag it has guessed.
    pub(super) fn fill_sink(
        &mut self,
        pd: u32,
        other: u32,
        sink: Sink,
        bytes: &[u8],
    ) -> Result<(), String> {
        let access = ib_access_flags_IB_ACCESS_REMOTE_WRITE;
        let rest = sink.len as usize - bytes.len();
        let honest = self.is_honest(other);
        match self.reach(pd, sink.stag, sink.addr, sink.len as usize, access) {
            Ok(valid) => {
                let start = sink.addr + bytes.len() as u64;
                if !valid.written && is_filled(valid, start, rest) {
                    sched::fail(format_args!(
                        "a Read ends early, and {rest} bytes of the Call are what was there before"
                    ));
                }
                store(valid, sink.addr, bytes);
            }
            Err(why) if honest => {
                sched::fail(format_args!("the sink of a Read: {why}"));
            }
            Err(why) => return Err(why),
        }
        let _ = self.invalidate(pd, sink.stag);
        Ok(())
    }

    fn is_honest(&self, number: u32) -> bool {
        self.qps.get(&number).is_none_or(|qp| qp.honest)
    }

    /// How many of `len` bytes the peer `other` returns for a Read. siw does not notice that some
    /// are missing.
    pub(super) fn returned(&self, other: u32, len: usize) -> usize {
        if self.is_honest(other) || len == 0 || !sched::one_in(self.device.short_reads) {
            return len;
        }
        sched::below(len)
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
        if !core::mem::replace(&mut self.qp(other).heard, true) {
            cm(|cm| {
                if let Some(id) = cm.id_of_qp(other) {
                    cm.establish(id);
                }
            });
        }
    }
}

/// Waits, as `iw_cm_disconnect()` and `iw_destroy_cm_id()`, until an accepted connection is
/// established.
pub(super) fn wait_for_established(number: usize) {
    if !fabric(|f| f.device.iwarp) {
        return;
    }
    let waits = || {
        cm(|cm| {
            let id = &cm.ids[&number];
            id.accepted && !id.established && !id.disconnected
        })
    };
    while waits() {
        sched::wait_on(connect_key(number));
    }
}
