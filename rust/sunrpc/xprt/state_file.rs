// SPDX-License-Identifier: GPL-2.0

//! The file that shows the state of a transport, under `/sys/kernel/debug/rpcrdma/client`.
//!
//! Its reader waits for no lock. While another thread has the mutex `link`, the file lacks the
//! values of the connection: an RPC that is given up may hold the mutex until the device answers.

use core::{
    fmt,
    ptr::NonNull, //
};

use crate::{
    bindings,
    debugfs::{
        self,
        File,
        Lines,
        Show, //
    },
    lib::clock,
    sunrpc::c_ref::{
        load,
        read_once, //
    }, //
};

use super::{
    rpc_xprt::XprtState,
    status::XprtStatus,
    transport::Transport, //
};

/// The state of a transport, in the file.
///
/// # Invariants
///
/// - I1: The state is not dropped before the file is removed.
pub(super) struct StateOf<T: Transport>(NonNull<XprtState<T>>);

// SAFETY: What it points to is used by many threads.
unsafe impl<T: Transport> Send for StateOf<T> {}
// SAFETY: As above.
unsafe impl<T: Transport> Sync for StateOf<T> {}

/// Creates the file of a transport, if there is memory. Sleeps.
///
/// # Safety
///
/// [`XprtState::remove_file`] is called before `state` is dropped, and before the transport puts
/// its reference to the module.
pub(super) unsafe fn create<T: Transport>(state: &XprtState<T>) {
    let id = read_once!(state.xprt(), id);
    // INVARIANT: I1: by this function's contract.
    let shown = StateOf(NonNull::from(state));
    // SAFETY: By this function's contract. The module makes the tree before SUNRPC can take a
    // reference to the module, and its exit, which drops the tree, comes after the last put of one.
    let file = unsafe { File::create(&debugfs::CLIENT, id, shown) };
    if let Ok(file) = file {
        state.set_file(file);
    }
}

impl<T: Transport> Show for StateOf<T> {
    fn show(&self, lines: &mut Lines) -> fmt::Result {
        // SAFETY: By I1, since the removal of the file waits for this function.
        let state = unsafe { self.0.as_ref() };
        let status = status(state);
        // `lines` does not grow, so nothing is allocated under the mutex.
        state.try_with_link(|connection| state.transport.show(&status, connection, lines))
    }
}

fn status<T: Transport>(state: &XprtState<T>) -> XprtStatus {
    let xprt = state.xprt();
    let credits = |cong: usize| cong >> bindings::RPC_CWNDSHIFT;
    // CAST: The length of a queue of tasks.
    let waiting = read_once!(xprt, sending.qlen) as usize + read_once!(xprt, backlog.qlen) as usize;
    let mut calls_in_flight = 0;
    let mut oldest = None;
    for slot in state
        .slots()
        .filter(|slot| slot.slot_state.is_outstanding())
    {
        calls_in_flight += 1;
        // SAFETY: The slot stays as long as the state. Single accesses do not tear.
        let sent = unsafe { load(&raw const (*slot.rqst()).rq_xtime) };
        oldest = Some(oldest.map_or(sent, |oldest: i64| oldest.min(sent)));
    }
    XprtStatus {
        peer: xprt.peer(),
        state: word(state),
        connects: read_once!(xprt, stat.connect_count),
        credits_used: credits(read_once!(xprt, cong)),
        waiting,
        calls_in_flight,
        oldest_call_ms: oldest.map(clock::ms_since_ktime),
    }
}

/// The state in one word.
fn word<T: Transport>(state: &XprtState<T>) -> &'static str {
    let flags = state.xprt().flags();
    let is = |flag: u32| flags.test(1 << flag);
    if is(bindings::XPRT_CONNECTED) {
        if is(bindings::XPRT_CLOSE_WAIT) {
            "closing"
        } else {
            "connected"
        }
    } else if is(bindings::XPRT_CONNECTING) {
        "connecting"
    } else {
        "closed"
    }
}
