// SPDX-License-Identifier: GPL-2.0

//! The class of server transports: what SUNRPC finds by name, and makes listeners and connections
//! with.

use core::marker::PhantomData;

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

use super::{
    ops::Ops,
    svc_xprt::CLASS,
    transport::Listener, //
};

/// The registration of the class whose listeners are `L`.
#[must_use = "it ends when it is dropped"]
pub(crate) struct Registration<L: Listener>(PhantomData<L>);

// SAFETY: Registration and its end may happen on different threads.
unsafe impl<L: Listener> Send for Registration<L> {}
// SAFETY: A shared reference offers nothing.
unsafe impl<L: Listener> Sync for Registration<L> {}

impl<L: Listener> Registration<L> {
    /// Registers the class, once.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there was such a class already.
    pub(crate) fn new(name: &'static CStr, module: &'static ThisModule) -> Result<Self> {
        CLASS.register(|class| {
            // SAFETY: Nobody else looks at the class, and all zeroes is valid for it.
            unsafe {
                class.write_bytes(0, 1);
                (*class).xcl_name = name.as_char_ptr();
                (*class).xcl_owner = module.as_ptr();
                (*class).xcl_ops = Ops::<L>::LISTENER;
                (*class).xcl_max_payload = bindings::RPCSVC_MAXPAYLOAD;
                (*class).xcl_ident = bindings::xprt_transports_XPRT_TRANSPORT_RDMA as c_int;
            }
            // SAFETY: Complete, and there until it is unregistered. SUNRPC holds the module while
            // there are transports.
            to_result(unsafe { bindings::svc_reg_xprt_class(class) })
        })?;
        Ok(Self(PhantomData))
    }
}

impl<L: Listener> Drop for Registration<L> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::svc_unreg_xprt_class(CLASS.get()) };
    }
}
