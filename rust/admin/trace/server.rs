// SPDX-License-Identifier: GPL-2.0

//! Events of the server end.

use super::events;
use super::Cid;

events! {
    /// A Send completed well.
    fn svcrdma_wc_send(cid: Cid);
    /// A Reply is being posted; `inv_rkey` is zero where nothing is invalidated remotely.
    fn svcrdma_post_send(cid: Cid, num_sge: u32, inv_rkey: u32);
}
