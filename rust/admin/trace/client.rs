// SPDX-License-Identifier: GPL-2.0

//! Events of the client end.

use super::events;
use super::Cid;
use crate::bindings::addr::SockAddr;

events! {
    /// A Send completed.
    fn xprtrdma_wc_send(cid: Cid, status: u32, vendor_err: u32);
    /// A Receive completed.
    fn xprtrdma_wc_receive(cid: Cid, status: u32, vendor_err: u32, received: u32);
    /// SUNRPC asked for a connection; it is tried after `delay` jiffies.
    fn xprtrdma_op_connect(peer: SockAddr, delay: usize);
}
