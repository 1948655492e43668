// SPDX-License-Identifier: GPL-2.0

//! What the stand-ins know of connections, to compare it with what the module's files say.

use super::fabric::*;
use super::xprt::{state, sunrpc};
use super::*;

/// Names and values, as in a file.
pub(crate) type Book = Vec<(&'static str, String)>;

/// What SUNRPC knows of the client's transport with this number.
pub(crate) fn of_client(id: &str) -> Book {
    let xprts: Vec<usize> = sunrpc(|s| s.queues.keys().copied().collect());
    let mut book = Book::new();
    for xprt in xprts.into_iter().map(ptr::<rpc_xprt>) {
        // SAFETY: A transport in the list is there.
        unsafe {
            if !(*xprt).bc_xprt.is_null() || (*xprt).id.to_string() != id {
                continue;
            }
            let flags = *state(xprt);
            let is = |flag: u32| flags & 1 << flag != 0;
            let word = match (is(XPRT_CONNECTED), is(XPRT_CLOSE_WAIT), is(XPRT_CONNECTING)) {
                (true, true, _) => "closing",
                (true, false, _) => "connected",
                (false, _, true) => "connecting",
                (false, _, false) => "closed",
            };
            let waiting = (*xprt).sending.qlen + (*xprt).backlog.qlen;
            book.push(("state", word.to_owned()));
            book.push(("connects", (*xprt).stat.connect_count.to_string()));
            let used = (*xprt).cong >> RPC_CWNDSHIFT;
            book.push(("credits_used", used.to_string()));
            book.push(("credits_waiting", waiting.to_string()));
        }
    }
    book
}

/// What SUNRPC knows of the server's connection with this number.
pub(crate) fn of_server(number: &str) -> Book {
    let Some(xprt) = svc::numbered(number) else {
        return Book::new();
    };
    // SAFETY: A transport that SUNRPC has is there.
    unsafe {
        let admitted = (*xprt).xpt_flags & 1 << XPT_PEER_VALID != 0;
        let admitted = if admitted { "yes" } else { "no" };
        vec![
            ("calls_in_flight", (*xprt).xpt_nr_rqsts.counter.to_string()),
            ("admitted", admitted.to_owned()),
        ]
    }
}

/// The Receives that are posted on the server's device (0) or the client's (1), and the regions of
/// the module on it.
pub(crate) fn of_device(which: usize) -> (usize, usize) {
    let device = devices()[which].addr();
    fabric(|f| {
        let is_on = |pd: &u32| f.owners.get(pd) == Some(&device);
        let qps = f.qps.values().filter(|qp| is_on(&qp.pd));
        let receives = qps.map(|qp| qp.recv.len()).sum();
        let mrs = f.mrs.values().filter(|mr| is_on(&mr.pd) && !mr.of_core);
        (receives, mrs.count())
    })
}
