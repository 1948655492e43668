// SPDX-License-Identifier: GPL-2.0

//! Members of work requests that are parts of unions.

use crate::bindings;

/// Sets the `cqe` that completes `wr`. The caller keeps the `cqe` while `wr` is posted.
#[inline]
pub(in crate::verbs) fn set_cqe(wr: &mut bindings::ib_send_wr, cqe: *mut bindings::ib_cqe) {
    // SAFETY: The union member that the RDMA core reads. All members are plain.
    *unsafe { wr.__bindgen_anon_1.wr_cqe.as_mut() } = cqe;
}

/// Sets the rkey that `wr` invalidates: the peer's if `wr` is a Send With Invalidate, or this end's
/// if `wr` is a LOCAL_INV.
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
