// SPDX-License-Identifier: GPL-2.0

//! The work request of a Send.

use crate::bindings;

/// Makes `wr` a Send. With `invalidate`, it is a Send With Invalidate of this rkey of the peer.
#[inline]
pub(in crate::verbs) fn set_send(wr: &mut bindings::ib_send_wr, invalidate: Option<u32>) {
    wr.opcode = match invalidate {
        None => bindings::ib_wr_opcode_IB_WR_SEND,
        Some(handle) => {
            // SAFETY: The union member of this opcode. All members are plain integers.
            *unsafe { wr.ex.invalidate_rkey.as_mut() } = handle;
            bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV
        }
    };
}
