// SPDX-License-Identifier: GPL-2.0

//! An endpoint's identifier: what the connection manager is asked for, and what it knows of device
//! and addresses. It answers by events.

use core::ptr;

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::{
    bindings,
    lib::sockaddr::{
        Net,
        SockAddr, //
    },
    verbs::device::{
        attrs::DeviceAttrs,
        ib_client::DeviceRef, //
    }, //
};

use super::{
    cm_event::ConnParam,
    ep::{
        Endpoint,
        EndpointBox, //
    },
    ops::EndpointOps, //
};

impl<C: EndpointOps> Endpoint<C> {
    /// An endpoint that listens on `addr`, for that address family only.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` and others from the connection manager, `ENOMEM`.
    pub(crate) fn listen(
        net: Net,
        addr: &SockAddr,
        backlog: c_int,
        context: impl PinInit<C, Error>,
    ) -> Result<EndpointBox<C>> {
        let endpoint = Self::create(net, context)?;
        let id = endpoint.id();
        // SAFETY: The identifier is valid; the address is copied. C's prototype lacks a `const`.
        unsafe {
            to_result(bindings::rdma_set_afonly(id, 1))?;
            to_result(bindings::rdma_bind_addr(id, addr.as_ptr().cast_mut()))?;
            to_result(bindings::rdma_listen(id, backlog))?;
        }
        Ok(endpoint)
    }

    /// Looks for the device that reaches `to`; answered by an event.
    ///
    /// # Errors
    ///
    /// What the connection manager reports.
    pub(crate) fn resolve_addr(&self, to: &SockAddr, timeout_ms: usize) -> Result {
        // SAFETY: The identifier is valid; the address is copied.
        to_result(unsafe {
            bindings::rdma_resolve_addr(self.id(), ptr::null_mut(), to.as_ptr(), timeout_ms)
        })
    }

    /// Looks for the route to the peer; answered by an event.
    ///
    /// # Errors
    ///
    /// What the connection manager reports.
    pub(crate) fn resolve_route(&self, timeout_ms: usize) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_resolve_route(self.id(), timeout_ms) })
    }

    /// Asks the peer for a connection; answered by an event.
    ///
    /// # Errors
    ///
    /// What the connection manager reports.
    pub(crate) fn connect(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: The identifier is valid; the parameters are copied.
        to_result(unsafe { bindings::rdma_connect(self.id(), &mut raw) })
    }

    /// Accepts the peer's request; followed by an event.
    ///
    /// # Errors
    ///
    /// What the connection manager reports.
    pub(crate) fn accept(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: The identifier is valid; accepting wants the handler's mutex.
        to_result(unsafe {
            bindings::rdma_lock_handler(self.id());
            let ret = bindings::rdma_accept(self.id(), &mut raw);
            bindings::rdma_unlock_handler(self.id());
            ret
        })
    }

    /// Ends the connection, if there is one. What is posted is flushed.
    pub(crate) fn disconnect(&self) {
        // SAFETY: The identifier is valid. Failure means that there is no connection to end.
        unsafe { bindings::rdma_disconnect(self.id()) };
    }

    /// Ends the connection, at once: when this returns, the queue pair answers nobody any more. The
    /// connection manager alone would let an iWARP connection come to its end in its own time, and
    /// that of the peer. May sleep.
    pub(crate) fn set_qp_error(&self) {
        if let Some(qp) = self.qp() {
            let mut attr = bindings::ib_qp_attr {
                qp_state: bindings::ib_qp_state_IB_QPS_ERR,
                ..Default::default()
            };
            let what = bindings::ib_qp_attr_mask_IB_QP_STATE.cast_signed();
            // Possible from every state. That a device does it is one of the things that it is
            // trusted with (Documentation/architecture.rst): to drain its queues is no more.
            // SAFETY: The queue pair is there as long as the endpoint.
            unsafe { bindings::ib_modify_qp(qp.as_ptr(), &mut attr, what) };
        }
        self.disconnect();
    }

    /// Takes a lease on the identifier's device and describes it.
    ///
    /// The address must be resolved, or the connection come from a peer.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no device, or if it is being removed.
    pub(crate) fn device(&self) -> Result<DeviceAttrs> {
        // SAFETY: The device stays for the call.
        self.with_device(|device, port| unsafe { DeviceAttrs::query(device, port) })
    }

    /// Tells the name of the identifier's device, which need not be open.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(crate) fn with_device_name<R>(&self, tell: impl FnOnce(&CStr) -> R) -> Result<R> {
        Ok(tell(&self.device_ref()?.device_name()))
    }

    /// Asks the identifier's device, which is kept meanwhile.
    pub(in crate::verbs) fn with_device<R>(
        &self,
        ask: impl FnOnce(*mut bindings::ib_device, u32) -> R,
    ) -> Result<R> {
        let device_ref = self.device_ref()?;
        Ok(ask(device_ref.device(), self.port()))
    }

    /// Keeps the identifier's device.
    pub(in crate::verbs) fn device_ref(&self) -> Result<DeviceRef> {
        // SAFETY: The identifier is valid.
        DeviceRef::take(unsafe { (*self.id()).device })
    }

    /// The port of the device, 1-based; 0 while there is none.
    #[inline]
    pub(crate) fn port(&self) -> u32 {
        // SAFETY: The identifier is valid.
        unsafe { (*self.id()).port_num }
    }

    /// The address of this end.
    pub(crate) fn local_addr(&self) -> Option<SockAddr> {
        // SAFETY: The identifier is valid; the address is a whole `sockaddr_storage`.
        unsafe {
            let addr = &raw const (*self.id()).route.addr.src_addr;
            SockAddr::from_raw(addr.cast(), size_of::<SockAddr>())
        }
    }

    /// The address of the peer.
    pub(crate) fn peer_addr(&self) -> Option<SockAddr> {
        // SAFETY: The identifier is valid; the address is a whole `sockaddr_storage`.
        unsafe {
            let addr = &raw const (*self.id()).route.addr.dst_addr;
            SockAddr::from_raw(addr.cast(), size_of::<SockAddr>())
        }
    }
}
