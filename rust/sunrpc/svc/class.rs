// SPDX-License-Identifier: GPL-2.0

//! The registration of the server's transport class, which SUNRPC finds by its name.

use core::marker::PhantomData;

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

use super::{
    backchannel_class::BackchannelRegistration,
    ops::Ops,
    svc_xprt::CLASS,
    transport::Listener, //
};

/// The registration of the transport class whose listeners are `L`. Dropping it unregisters the
/// class.
#[must_use = "dropping it unregisters the class"]
pub(crate) struct ClassRegistration<L: Listener>(PhantomData<L>);

impl<L: Listener> ClassRegistration<L> {
    /// Registers the class. SUNRPC can create listeners from now on, even before the module's init
    /// has ended. No step of the init that may fail comes afterwards, because a failed init frees
    /// the module whether or not listeners exist.
    ///
    /// # Errors
    ///
    /// `EEXIST` if such a class is registered already.
    pub(crate) fn new(
        _backchannel: &BackchannelRegistration<L>,
        module: &'static ThisModule,
    ) -> Result<Self> {
        let fill = |class: &mut bindings::svc_xprt_class| {
            class.xcl_name = L::NAME.to_bytes_with_nul().as_ptr();
            class.xcl_owner = module.as_ptr();
            class.xcl_ops = Ops::<L>::LISTENER;
            class.xcl_max_payload = bindings::RPCSVC_MAXPAYLOAD;
            class.xcl_ident = bindings::xprt_transports_XPRT_TRANSPORT_RDMA as c_int;
        };
        CLASS.register(fill, |class| {
            // SAFETY: The class is complete, and name and operations are static. It is a static
            // itself, and stays until it is unregistered. Each transport has a reference to the
            // module.
            to_result(unsafe { bindings::svc_reg_xprt_class(class) })
        })?;
        Ok(Self(PhantomData))
    }
}

impl<L: Listener> Drop for ClassRegistration<L> {
    fn drop(&mut self) {
        // SAFETY: `new` registered the class, and no other value unregisters it. SUNRPC takes the
        // class out of its list and accesses nothing else. The class is a static of the module, to
        // which each transport has a reference.
        unsafe { bindings::svc_unreg_xprt_class(CLASS.get()) };
    }
}
