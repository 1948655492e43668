// SPDX-License-Identifier: GPL-2.0

//! Initializers.

use core::mem::MaybeUninit;

#[cfg(rpcrdma_has_pin_init_scope)]
pub(crate) use pin_init::pin_init_scope;
#[cfg(rpcrdma_has_write_pin_init)]
use pin_init::InPlaceWrite;
use pin_init::PinInit;

/// An initializer that calls `make`, and then the initializer that `make` returns.
#[cfg(not(rpcrdma_has_pin_init_scope))]
pub(crate) fn pin_init_scope<T, E, F, I>(make: F) -> impl PinInit<T, E>
where
    F: FnOnce() -> Result<I, E>,
    I: PinInit<T, E>,
{
    let init = move |slot: *mut T| -> Result<(), E> {
        let init = make()?;
        // SAFETY: By the contract of the initializer that is made of this closure, `slot` is valid
        // and pinned. An error is returned.
        unsafe { init.__pinned_init(slot) }
    };
    // SAFETY: `slot` is initialized by an initializer, which keeps the contract.
    unsafe { pin_init::pin_init_from_closure(init) }
}

/// Initializes memory that is never moved.
///
/// # Errors
///
/// Those of `init`. The memory is then not initialized.
pub(crate) fn write_pin_init<T, E>(
    slot: &'static mut MaybeUninit<T>,
    init: impl PinInit<T, E>,
) -> Result<(), E> {
    #[cfg(rpcrdma_has_write_pin_init)]
    return slot.write_pin_init(init).map(drop);
    #[cfg(not(rpcrdma_has_write_pin_init))]
    // SAFETY: The memory is valid for writes. The borrow never ends, so nothing moves it. An error
    // is returned.
    unsafe {
        init.__pinned_init(slot.as_mut_ptr())
    }
}
