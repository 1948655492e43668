// SPDX-License-Identifier: GPL-2.0

//! The name of an RPC, for log messages.
//!
//! C header: [`include/linux/sunrpc/clnt.h`](srctree/include/linux/sunrpc/clnt.h)

use core::ffi::CStr;

use kernel::{
    fmt,
    prelude::*, //
};

use super::{
    c_ref::read_once,
    rpc_rqst::TaskRef, //
};

/// The program, its version and the procedure of an RPC: `nfs v4 READ`.
#[derive(Clone, Copy)]
pub(crate) struct CallName<'a> {
    program: &'a str,
    version: u32,
    procedure: &'a str,
}

impl<'a> CallName<'a> {
    /// The name of a task's RPC.
    #[cold]
    pub(super) fn of_task(task: TaskRef<'a>) -> Self {
        let procedure = read_once!(task, tk_msg.rpc_proc);
        let client = task.client();
        Self {
            program: client.map_or("", |client| {
                let program = read_once!(client, cl_program);
                // SAFETY: A client keeps its program, which has a name.
                unsafe { text((*program).name) }
            }),
            version: client.map_or(0, |client| read_once!(client, cl_vers)),
            procedure: if procedure.is_null() {
                ""
            } else {
                // SAFETY: The task keeps its procedure.
                unsafe { text((*procedure).p_name) }
            },
        }
    }
}

impl fmt::Display for CallName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SUNRPC's own NULL procedures have no name.
        let procedure = if self.procedure.is_empty() {
            "NULL"
        } else {
            self.procedure
        };
        write!(f, "{} v{} {procedure}", self.program, self.version)
    }
}

/// A string of C; empty if it is null or not UTF-8.
///
/// # Safety
///
/// `raw` is null or a string that stays within `'a`.
unsafe fn text<'a>(raw: *const c_char) -> &'a str {
    if raw.is_null() {
        return "";
    }
    #[allow(clippy::disallowed_methods, reason = "6.18 lacks from_char_ptr()")]
    // SAFETY: By this function's contract.
    let text = unsafe { CStr::from_ptr(raw.cast()) };
    text.to_str().unwrap_or_default()
}
