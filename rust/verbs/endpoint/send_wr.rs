// SPDX-License-Identifier: GPL-2.0

//! Members of work requests that are parts of unions.

use crate::bindings;

/// Has `wr` complete by `cqe`, which the caller keeps for as long as it is posted.
#[inline]
pub(in crate::verbs) fn set_cqe(wr: &mut bindings::ib_send_wr, cqe: *mut bindings::ib_cqe) {
    // SAFETY: The union member that the RDMA core reads. All members are plain.
    *unsafe { wr.__bindgen_anon_1.wr_cqe.as_mut() } = cqe;
}

/// Has `wr` invalidate `handle`: the peer's rkey if `wr` is a Send With Invalidate, or an own one
/// if it is a LOCAL_INV.
#[inline]
pub(in crate::verbs) fn set_invalidate(wr: &mut bindings::ib_send_wr, handle: u32) {
    // SAFETY: The union member of these opcodes. All members are plain integers.
    *unsafe { wr.ex.invalidate_rkey.as_mut() } = handle;
}

/// Makes `wr` a Send. With `invalidate`, it is a Send With Invalidate of this rkey of the peer.
#[inline]
pub(in crate::verbs) fn set_send(wr: &mut bindings::ib_send_wr, invalidate: Option<u32>) {
    wr.opcode = match invalidate {
        None => bindings::ib_wr_opcode_IB_WR_SEND,
        Some(handle) => {
            set_invalidate(wr, handle);
            bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV
        }
    };
}
