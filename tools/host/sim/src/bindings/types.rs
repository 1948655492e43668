// SPDX-License-Identifier: GPL-2.0

//! Structures of the kernel itself: memory, addresses, files, trace events.

use core::ffi::c_void;

use kernel::ffi::{c_char, c_int, c_uint, c_ulong, c_ushort};
use pin_init::Zeroable;

/// A member of a union, as bindgen presents it. Here each member has memory of its own.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnionField<T>(T);

impl<T> UnionField<T> {
    pub(crate) unsafe fn as_ref(&self) -> &T {
        &self.0
    }

    pub(crate) unsafe fn as_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

// SAFETY: As for the member.
unsafe impl<T: Zeroable> Zeroable for UnionField<T> {}

macro_rules! structures {
    ($($name:ident { $($field:ident: $ty:ty,)* })*) => {$(
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $ty,)*
        }

        // SAFETY: Integers, raw pointers, functions that may be absent, and structures of these.
        unsafe impl Zeroable for $name {}

        impl Default for $name {
            fn default() -> Self {
                pin_init::zeroed()
            }
        }
    )*};
}

pub(super) use structures;

macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(crate) struct $name(u8);
    )*};
}

opaque!(dentry, seq_file, svc_pool, tracepoint);

/// A page: the address of its structure is its own, and its neighbour's follows.
#[repr(C)]
pub(crate) struct page([u8; 4096]);

pub(crate) type gfp_t = c_uint;
pub(crate) type loff_t = i64;
pub(crate) type umode_t = c_ushort;
pub(crate) type dma_data_direction = c_uint;
pub(crate) type ib_wc_status = c_uint;

// Memory.
structures! {
    kvec { iov_base: *mut c_void, iov_len: usize, }
    bio_vec { bv_page: *mut page, bv_len: c_uint, bv_offset: c_uint, }
    bvec_iter { bi_size: c_uint, bi_idx: c_uint, bi_bvec_done: c_uint, }
    scatterlist {
        page_link: c_ulong,
        offset: c_uint,
        length: c_uint,
        dma_address: u64,
        dma_length: c_uint,
    }
    atomic_t { counter: c_int, }
    refcount_t { refs: atomic_t, }
    kref { refcount: refcount_t, }
    list_head { next: *mut list_head, prev: *mut list_head, }
}

// Addresses.
structures! {
    sockaddr { sa_family: c_ushort, sa_data: [u8; 14], }
    sockaddr_in { sin_family: c_ushort, sin_port: c_ushort, sin_addr: u32, pad: [u8; 8], }
    sockaddr_in6 {
        sin6_family: c_ushort,
        sin6_port: c_ushort,
        flow: u32,
        addr: [u8; 16],
        scope: u32,
    }
    __kernel_sockaddr_storage { bytes: [u64; 16], }
    net { refs: c_int, }
}

// Files.
structures! {
    file { private_data: *mut c_void, }
    debugfs_short_fops {
        read: Option<unsafe extern "C" fn(*mut file, *mut c_char, usize, *mut loff_t) -> isize>,
        write: Option<unsafe extern "C" fn(*mut file, *const c_char, usize, *mut loff_t) -> isize>,
        llseek: Option<unsafe extern "C" fn(*mut file, loff_t, c_int) -> loff_t>,
    }
    ctl_table_header { path: *const c_char, }
    ctl_table {
        procname: *const c_char,
        data: *mut c_void,
        maxlen: c_int,
        mode: umode_t,
        proc_handler: proc_handler,
        poll: *mut c_void,
        extra1: *mut c_void,
        extra2: *mut c_void,
    }
}

pub(crate) type proc_handler = Option<
    unsafe extern "C" fn(*const ctl_table, c_int, *mut c_void, *mut usize, *mut loff_t) -> c_int,
>;

// Trace events.
structures! {
    rpcrdma_trace_task { task_id: c_uint, client_id: c_uint, }
    rpc_rdma_cid { ci_queue_id: c_uint, ci_completion_id: c_int, }
    rpcrdma_trace_mr {
        mr_id: c_uint,
        nents: c_uint,
        handle: c_uint,
        length: c_uint,
        offset: u64,
        dir: c_uint,
    }
}
