// SPDX-License-Identifier: GPL-2.0

//! Events of the RDMA devices under both transports.

use kernel::str::CStr;

use super::events;

events! {
    /// A device appeared.
    fn rpcrdma_client_add_one(device: &CStr);
    /// A device is to be removed.
    fn rpcrdma_client_remove_one(device: &CStr);
    /// Removal waits for the device's users.
    fn rpcrdma_client_wait_on(device: &CStr);
    /// The last user of a device that is being removed is gone.
    fn rpcrdma_client_completion(device: &CStr);
    /// A device is gone.
    fn rpcrdma_client_remove_one_done(device: &CStr);
    /// A connection began to use a device.
    fn rpcrdma_client_register(device: &CStr, index: u32);
    /// A connection no longer uses a device.
    fn rpcrdma_client_unregister(device: &CStr, index: u32);
}
