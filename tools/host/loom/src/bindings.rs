// SPDX-License-Identifier: GPL-2.0

//! The C types and functions that the models' files name.

#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "the names in C"
)]

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::verbs::endpoint::completion::Done;

pub(crate) const ib_wr_opcode_IB_WR_SEND: u32 = 2;
pub(crate) const ib_wr_opcode_IB_WR_LOCAL_INV: u32 = 10;
pub(crate) const ib_wr_opcode_IB_WR_REG_MR: u32 = 32;
pub(crate) const ib_send_flags_IB_SEND_SIGNALED: u32 = 2;

pub(crate) struct ib_cqe {
    pub(crate) done: Option<Done>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct ib_sge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
}

pub(crate) struct ib_send_wr {
    pub(crate) wr_cqe: *mut ib_cqe,
    pub(crate) sg_list: *mut ib_sge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: u32,
    pub(crate) send_flags: u32,
}

impl Default for ib_send_wr {
    fn default() -> Self {
        Self {
            wr_cqe: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: 0,
            opcode: 0,
            send_flags: 0,
        }
    }
}

pub(crate) struct ib_mr;

pub(crate) struct ib_reg_wr {
    pub(crate) wr: ib_send_wr,
    pub(crate) mr: *mut ib_mr,
}

impl Default for ib_reg_wr {
    fn default() -> Self {
        Self {
            wr: ib_send_wr::default(),
            mr: ptr::null_mut(),
        }
    }
}

/// A page. No model depends on the order of its references.
pub(crate) struct page {
    pub(crate) refs: AtomicUsize,
}

/// # Safety
///
/// The page is there.
pub(crate) unsafe fn rpcrdma_get_page(page: *mut page) {
    // SAFETY: By this function's contract.
    unsafe { &*page }.refs.fetch_add(1, Relaxed);
}

/// # Safety
///
/// The page is there.
pub(crate) unsafe fn rpcrdma_put_page(page: *mut page) {
    // SAFETY: By this function's contract.
    let refs = unsafe { &*page }.refs.fetch_sub(1, Relaxed);
    assert!(refs > 1, "a page is put that the caller does not hold");
}
