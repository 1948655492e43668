// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the server, as in `net/sunrpc/svc_xprt.c`: transports, and the queue of those with
//! work. What nfsd itself does is [`Program`].

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use kernel::ffi::{c_char, c_int, c_ulong};
use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::*;

/// What a service does with a Call.
pub(crate) trait Program {
    /// Executes a Call of a connection, whose bytes these are. `None` if no Reply is to be sent.
    fn execute(&self, connection: usize, call: &[u8]) -> Option<Answer>;
}

/// A Reply.
pub(crate) struct Answer {
    /// The encoded Reply.
    pub(crate) head: Vec<u8>,
    /// The data between head and tail, which go into the pages.
    pub(crate) data: Vec<u8>,
    /// What follows the data.
    pub(crate) tail: Vec<u8>,
    /// Whether the data are a result that may be placed directly.
    pub(crate) eligible: bool,
    /// The data are in pages of a file, which replace those of the request.
    pub(crate) from_file: bool,
    /// The pseudoflavor of the credential.
    pub(crate) flavor: u32,
}

#[derive(Default)]
pub(super) struct Service {
    pub(super) serv: usize,
    pub(super) class: usize,
    pub(super) queue: VecDeque<usize>,
    /// The transports that SUNRPC has, with a reference to each.
    pub(super) transports: Vec<usize>,
    pub(super) program: Option<Rc<dyn Program>>,
    pub(super) stopping: bool,
    pub(super) threads: usize,
    /// The numbers of the connections.
    pub(super) numbers: BTreeMap<usize, usize>,
    pub(super) next: usize,
}

thread_local! {
    static SERVICE: RefCell<Service> = RefCell::default();
    static STANDS: Cell<u32> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
}

/// Has one in `n` threads stand still for a while when it has taken a message; none if `n` is 0.
pub(crate) fn stand_still(n: u32) {
    STANDS.set(n);
}

pub(super) fn service<R>(f: impl FnOnce(&mut Service) -> R) -> R {
    SERVICE.with_borrow_mut(f)
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    SERVICE.with(|service| {
        if let Ok(mut service) = service.try_borrow_mut() {
            core::mem::forget(core::mem::take(&mut *service));
        }
    });
}

/// The key that nfsd threads wait for.
pub(super) const WORK: usize = 5;

/// A key that nothing wakes.
const STILL: usize = 19;

pub(crate) unsafe extern "C" fn svc_reg_xprt_class(class: *mut svc_xprt_class) -> c_int {
    service(|s| s.class = class.expose_provenance());
    0
}

pub(crate) unsafe extern "C" fn svc_unreg_xprt_class(_class: *mut svc_xprt_class) {
    service(|s| s.class = 0);
}

pub(crate) unsafe extern "C" fn rpcrdma_svc_serv_maxpages(serv: *const svc_serv) -> c_ulong {
    // As `svc_serv_maxpages()`.
    let mesg = unsafe { (*serv).sv_max_mesg as usize };
    mesg.div_ceil(PAGE_SIZE) + 2 + 1
}

pub(crate) unsafe extern "C" fn svc_xprt_init(
    net: *mut net,
    class: *mut svc_xprt_class,
    xprt: *mut svc_xprt,
    serv: *mut svc_serv,
) {
    unsafe {
        xprt.write_bytes(0, 1);
        (*xprt).xpt_class = class;
        (*xprt).xpt_ops = (*class).xcl_ops;
        (*xprt).xpt_ref.refcount.refs.counter = 1;
        (*xprt).xpt_server = serv;
        (*xprt).xpt_flags = 1 << XPT_BUSY;
        (*xprt).xpt_net = net;
        rpcrdma_get_net(net);
        for (to, from) in (*xprt).xpt_remotebuf.iter_mut().zip(b"uninitialized") {
            *to = *from as c_char;
        }
    }
}

fn count(xprt: *mut svc_xprt) -> *mut c_int {
    unsafe { &raw mut (*xprt).xpt_ref.refcount.refs.counter }
}

pub(super) fn svc_xprt_get(xprt: *mut svc_xprt) {
    unsafe {
        if *count(xprt) <= 0 {
            sched::fail("a reference is taken to a transport that has none");
        }
        *count(xprt) += 1;
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_svc_xprt_get_unless_zero(xprt: *mut svc_xprt) -> bool {
    sched::preempt();
    unsafe {
        let got = *count(xprt) > 0;
        *count(xprt) += c_int::from(got);
        got
    }
}

pub(crate) unsafe extern "C" fn svc_xprt_put(xprt: *mut svc_xprt) {
    sched::preempt();
    unsafe {
        *count(xprt) -= 1;
        if *count(xprt) > 0 {
            return;
        }
        if *count(xprt) < 0 {
            sched::fail("a reference to a transport is put that does not exist");
        }
        // svc_xprt_free()
        let owner = (*(*xprt).xpt_class).xcl_owner;
        rpcrdma_put_net((*xprt).xpt_net);
        if !(*xprt).xpt_bc_xprt.is_null() {
            xprt_put((*xprt).xpt_bc_xprt);
        }
        (*(*xprt).xpt_ops).xpo_free.expect("an operation")(xprt);
        module_put(owner);
    }
    FREED.set(FREED.get() + 1);
}

/// The number of transports that were freed.
pub(crate) fn freed() -> usize {
    FREED.get()
}

pub(super) fn flags(xprt: *mut svc_xprt) -> *mut c_ulong {
    unsafe { &raw mut (*xprt).xpt_flags }
}

unsafe fn ready(xprt: *mut svc_xprt) -> bool {
    sched::preempt();
    let flags = unsafe { *flags(xprt) };
    if flags & (1 << XPT_CONN | 1 << XPT_CLOSE) != 0 {
        return true;
    }
    if flags & (1 << XPT_DATA | 1 << XPT_DEFERRED) != 0 {
        let has = unsafe { (*(*xprt).xpt_ops).xpo_has_wspace.expect("an operation") };
        return sched::no_sleep("in xpo_has_wspace()", || unsafe { has(xprt) }) != 0;
    }
    false
}

pub(crate) unsafe extern "C" fn svc_xprt_enqueue(xprt: *mut svc_xprt) {
    unsafe {
        if !ready(xprt) {
            return;
        }
        if test_and_change_bit(XPT_BUSY as usize, flags(xprt), true) {
            return;
        }
    }
    service(|s| s.queue.push_back(xprt.expose_provenance()));
    sched::wake(WORK);
    sched::preempt();
}

pub(crate) unsafe extern "C" fn svc_xprt_received(xprt: *mut svc_xprt) {
    unsafe {
        if *flags(xprt) & 1 << XPT_BUSY == 0 {
            sched::fail("svc_xprt_received() of a transport that is not busy");
        }
        test_and_change_bit(XPT_BUSY as usize, flags(xprt), false);
        svc_xprt_enqueue(xprt);
    }
    if sched::one_in(STANDS.get()) {
        let later = sched::now() + sched::below(500_000) as u64;
        while sched::wait_until(STILL, later) {}
    }
}

pub(crate) unsafe extern "C" fn svc_xprt_deferred_close(xprt: *mut svc_xprt) {
    unsafe {
        if !test_and_change_bit(XPT_CLOSE as usize, flags(xprt), true) {
            say!("transport {:#x} is to be closed", xprt.addr() & 0xffff);
            svc_xprt_enqueue(xprt);
        }
    }
}

pub(crate) unsafe extern "C" fn svc_xprt_close(xprt: *mut svc_xprt) {
    unsafe {
        test_and_change_bit(XPT_CLOSE as usize, flags(xprt), true);
        if !test_and_change_bit(XPT_BUSY as usize, flags(xprt), true) {
            say!(
                "transport {:#x} is closed by a worker",
                xprt.addr() & 0xffff
            );
            svc_delete_xprt(xprt);
        }
    }
}

pub(crate) unsafe extern "C" fn svc_xprt_copy_addrs(_rqst: *mut svc_rqst, _xprt: *mut svc_xprt) {}

/// `svc_delete_xprt()`. The transport stays busy.
pub(super) unsafe fn svc_delete_xprt(xprt: *mut svc_xprt) {
    unsafe {
        if test_and_change_bit(XPT_DEAD as usize, flags(xprt), true) {
            return;
        }
        (*(*xprt).xpt_ops).xpo_detach.expect("an operation")(xprt);
        let backchannel = (*xprt).xpt_bc_xprt;
        if !backchannel.is_null() {
            (*(*backchannel).ops).close.expect("an operation")(backchannel);
        }
        service(|s| s.transports.retain(|other| *other != xprt.addr()));
        svc_xprt_put(xprt);
    }
}

/// The number of transport classes.
pub(crate) fn svc_classes() -> usize {
    service(|s| usize::from(s.class != 0))
}

/// The address of the network namespace. No code accesses it.
pub(crate) const NET: usize = 64;

/// The number of connections that were accepted.
pub(crate) fn accepted() -> usize {
    service(|s| s.next)
}

/// The connection with this number, if SUNRPC has it.
pub(super) fn numbered(number: &str) -> Option<*mut svc_xprt> {
    service(|s| {
        let mut all = s.transports.iter();
        let is = |xprt: &&usize| s.numbers.get(xprt).is_some_and(|n| n.to_string() == number);
        all.find(is).map(|xprt| ptr(*xprt))
    })
}

/// The connections that SUNRPC has.
pub(crate) fn connections() -> Vec<usize> {
    service(|s| {
        let is_listener = |xprt: &usize| unsafe { *flags(ptr(*xprt)) & 1 << XPT_LISTENER != 0 };
        s.transports
            .iter()
            .copied()
            .filter(|xprt| !is_listener(xprt))
            .collect()
    })
}
