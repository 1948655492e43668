// SPDX-License-Identifier: GPL-2.0

//! Trace events of RDMA devices.

use core::ffi::CStr;

use super::events;

events! {
    /// A device was added.
    fn rpcrdma_client_add_one(device: &CStr);
    /// A device is to be removed.
    fn rpcrdma_client_remove_one(device: &CStr);
    /// The removal of a device waits for its users.
    fn rpcrdma_client_wait_on(device: &CStr);
    /// The last user of a device that is being removed has dropped its reference.
    fn rpcrdma_client_completion(device: &CStr);
    /// A device was removed.
    fn rpcrdma_client_remove_one_done(device: &CStr);
    /// A connection takes a reference to a device.
    fn rpcrdma_client_register(device: &CStr, index: u32);
    /// A connection drops its reference to a device.
    fn rpcrdma_client_unregister(device: &CStr, index: u32);
}
