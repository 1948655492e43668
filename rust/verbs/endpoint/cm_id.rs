// SPDX-License-Identifier: GPL-2.0

//! Requests of an endpoint to the connection manager, which answers by events.
//!
//! C: verbs.c, rpcrdma_create_id()
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

use core::{
    ffi::CStr,
    ptr, //
};

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::{
    bindings,
    lib::{
        memalloc::NoIo,
        sockaddr::{
            Net,
            SockAddr, //
        }, //
    },
    verbs::device::{
        attrs::DeviceAttrs,
        ib_client::DeviceRef, //
    }, //
};

use super::{
    cm_event::{
        ConnParam,
        IncomingConnection, //
    },
    ep::{
        CmId,
        Endpoint,
        EndpointBox, //
    },
    ops::EndpointOps, //
};

impl IncomingConnection<'_> {
    /// Takes the request. The new endpoint can be opened and accepted later.
    ///
    /// The caller must not drop the endpoint in the handler of the request: the drop waits for that
    /// handler.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of `context`. The request is then dropped.
    pub(crate) fn into_endpoint<C: EndpointOps>(
        self,
        context: impl PinInit<C, Error>,
    ) -> Result<EndpointBox<C>> {
        // SAFETY: The handler leaves the cm_id to the endpoint. It delivers no event before the
        // handler returns, which holds its handler lock.
        Endpoint::with_id(context, || Ok(unsafe { CmId::from_raw(self.into_id()) }))
    }
}

impl<C: EndpointOps> Endpoint<C> {
    /// Creates an endpoint that listens on `addr`, for the family of that address only.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the CM's error, among them `EADDRINUSE`.
    pub(crate) fn listen(
        net: Net,
        addr: &SockAddr,
        backlog: c_int,
        context: impl PinInit<C, Error>,
    ) -> Result<EndpointBox<C>> {
        let endpoint = Self::create(net, context)?;
        let id = endpoint.id();
        // SAFETY: The cm_id is valid. `rdma_bind_addr` copies the address, although its prototype
        // lacks a `const`.
        unsafe {
            to_result(bindings::rdma_set_afonly(id, 1))?;
            to_result(bindings::rdma_bind_addr(id, addr.as_ptr().cast_mut()))?;
            to_result(bindings::rdma_listen(id, backlog))?;
        }
        Ok(endpoint)
    }

    /// Resolves the address `to` to a device. An event reports the result.
    ///
    /// # Errors
    ///
    /// The CM's error.
    pub(crate) fn resolve_addr(&self, to: &SockAddr, timeout_ms: usize) -> Result {
        // SAFETY: The cm_id is valid, and the CM copies the address.
        to_result(unsafe {
            bindings::rdma_resolve_addr(self.id(), ptr::null_mut(), to.as_ptr(), timeout_ms)
        })
    }

    /// Resolves the route to the peer. An event reports the result.
    ///
    /// # Errors
    ///
    /// The CM's error.
    pub(crate) fn resolve_route(&self, timeout_ms: usize) -> Result {
        // SAFETY: The cm_id is valid.
        to_result(unsafe { bindings::rdma_resolve_route(self.id(), timeout_ms) })
    }

    /// Sends the peer a connection request. An event reports the result.
    ///
    /// # Errors
    ///
    /// The CM's error.
    pub(crate) fn connect(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: The cm_id is valid, and the CM copies the parameters.
        to_result(unsafe { bindings::rdma_connect(self.id(), &mut raw) })
    }

    /// Accepts the peer's connection request. An event reports when the connection is established.
    ///
    /// # Errors
    ///
    /// The CM's error.
    pub(crate) fn accept(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: The cm_id is valid, and the CM copies the parameters. `rdma_accept` requires the
        // handler lock.
        to_result(unsafe {
            bindings::rdma_lock_handler(self.id());
            let ret = bindings::rdma_accept(self.id(), &mut raw);
            bindings::rdma_unlock_handler(self.id());
            ret
        })
    }

    /// Tells the CM that a message has arrived, hence that the connection is established.
    ///
    /// The peer's RTU may be lost: without this, the connection is established only when the CM has
    /// sent its REP again. Does not sleep. May be called more than once.
    #[cold]
    pub(crate) fn notify_established(&self) {
        // An error means that the CM knows already, or that the connection has ended.
        // SAFETY: The cm_id is valid.
        unsafe {
            bindings::rdma_notify(self.id(), bindings::ib_event_type_IB_EVENT_COMM_EST);
        }
    }

    /// Disconnects. Posted work requests are flushed.
    pub(crate) fn disconnect(&self) {
        // SAFETY: The cm_id is valid. An error means that there is no connection.
        unsafe { bindings::rdma_disconnect(self.id()) };
    }

    /// Whether [`Self::disconnect`] and the drop of an accepted endpoint wait until the connection
    /// is established: `iw_cm_disconnect()` and `iw_destroy_cm_id()` do. With siw, a connection is
    /// established when the peer sends its first message, and there is no timeout.
    pub(crate) fn waits_for_established(&self) -> bool {
        self.registers_to_read()
    }

    /// Whether the CM may report the peer's neighbour entry as `CmEvent::Unreachable`. On iWARP
    /// this event has one reason: nothing has answered the connection request.
    pub(crate) fn reports_neighbour(&self) -> bool {
        !self.registers_to_read()
    }

    /// Moves the QP to the error state and disconnects. May sleep.
    ///
    /// When this returns, the QP no longer answers the peer. A disconnect alone does not ensure
    /// that: on iWARP the CM closes the connection in the background, after the peer has closed it.
    pub(crate) fn set_qp_error(&self) {
        if let Some(qp) = self.qp() {
            let mut attr = bindings::ib_qp_attr {
                qp_state: bindings::ib_qp_state_IB_QPS_ERR,
                ..Default::default()
            };
            let mask = bindings::ib_qp_attr_mask_IB_QP_STATE as c_int;
            // Called by CQ workers, too: memory reclaim may wait for the completions that they
            // handle.
            let _noio = NoIo::begin();
            // A device may fail this transition. The error is ignored: the module trusts devices to
            // perform it (Documentation/architecture.rst), and draining the QP relies on the same.
            // SAFETY: The endpoint keeps its QP.
            unsafe { bindings::ib_modify_qp(qp.as_ptr(), &mut attr, mask) };
        }
        self.disconnect();
    }

    /// Reads the attributes of the endpoint's device.
    ///
    /// The address must be resolved, or the endpoint must come from a connection request.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no device, or if it is being removed.
    pub(crate) fn device(&self) -> Result<DeviceAttrs> {
        Ok(DeviceAttrs::query(&self.device_ref()?, self.port()))
    }

    /// Calls `f` with the name of the endpoint's device. The endpoint need not be open.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(crate) fn with_device_name<R>(&self, f: impl FnOnce(&CStr) -> R) -> Result<R> {
        Ok(f(&self.device_ref()?.device_name()))
    }

    /// Calls `f` with the endpoint's device, which stays valid during the call, and the port.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(in crate::verbs) fn with_device<R>(
        &self,
        f: impl FnOnce(*mut bindings::ib_device, u32) -> R,
    ) -> Result<R> {
        let device_ref = self.device_ref()?;
        Ok(f(device_ref.device(), self.port()))
    }

    /// Takes a reference to the endpoint's device.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(super) fn device_ref(&self) -> Result<DeviceRef> {
        // SAFETY: The cm_id is valid.
        DeviceRef::take(unsafe { (*self.id()).device })
    }

    /// The port of the device, 1-based; 0 if the endpoint has no device.
    #[inline]
    pub(crate) fn port(&self) -> u32 {
        // SAFETY: The cm_id is valid.
        unsafe { (*self.id()).port_num }
    }

    /// The address of this end.
    pub(crate) fn local_addr(&self) -> Option<SockAddr> {
        // SAFETY: The cm_id is valid. The field is a `sockaddr_storage`.
        unsafe {
            let addr = &raw const (*self.id()).route.addr.src_addr;
            SockAddr::from_raw(addr.cast(), size_of::<SockAddr>())
        }
    }

    /// The address of the peer.
    pub(crate) fn peer_addr(&self) -> Option<SockAddr> {
        // SAFETY: The cm_id is valid. The field is a `sockaddr_storage`.
        unsafe {
            let addr = &raw const (*self.id()).route.addr.dst_addr;
            SockAddr::from_raw(addr.cast(), size_of::<SockAddr>())
        }
    }
}
