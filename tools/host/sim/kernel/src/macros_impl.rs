// SPDX-License-Identifier: GPL-2.0

//! Macros.

/// Initializes a structure in place.
#[macro_export]
macro_rules! pin_init {
    ($($arg:tt)*) => { ::pinned_init::pin_init!($($arg)*) };
}

/// Initializes a structure in place, or fails; with the kernel's error type if no other is named.
#[macro_export]
macro_rules! try_pin_init {
    ($(&$this:ident in)? $t:ident $(::<$($generics:ty),* $(,)?>)? { $($fields:tt)* }) => {
        ::pinned_init::try_pin_init!($(&$this in)? $t $(::<$($generics),*>)? {
            $($fields)*
        }? $crate::error::Error)
    };
    ($(&$this:ident in)? $t:ident $(::<$($generics:ty),* $(,)?>)? { $($fields:tt)* }? $err:ty) => {
        ::pinned_init::try_pin_init!($(&$this in)? $t $(::<$($generics),*>)? {
            $($fields)*
        }? $err)
    };
}

/// Whether a tracepoint is enabled.
#[macro_export]
macro_rules! static_branch_unlikely {
    ($key:path, $keytyp:ty, $field:ident) => {
        $crate::sched::traces()
    };
}

/// The structure with a field at this address.
#[macro_export]
macro_rules! container_of {
    ($field:expr, $container:ty, $name:ident) => {{
        let field = $field;
        field
            .byte_sub(::core::mem::offset_of!($container, $name))
            .cast::<$container>()
    }};
}
