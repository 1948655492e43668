// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the server, as in `net/sunrpc/svc_xprt.c`: transports, the queue of those with work,
//! and what an nfsd thread does with one. What nfsd itself does is [`Program`].

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use kernel::ffi::{c_int, c_ulong};
use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::nfsd_rqst::Rqst;
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
struct Service {
    serv: usize,
    class: usize,
    queue: VecDeque<usize>,
    /// The transports that SUNRPC has, with a reference to each.
    transports: Vec<usize>,
    program: Option<Rc<dyn Program>>,
    stopping: bool,
    threads: usize,
    /// The numbers of the connections.
    numbers: BTreeMap<usize, usize>,
    next: usize,
}

thread_local! {
    static SERVICE: RefCell<Service> = RefCell::default();
    static STANDS: Cell<u32> = const { Cell::new(0) };
}

/// Has one in `n` threads stand still for a while when it has taken a message; none if `n` is 0.
pub(crate) fn stand_still(n: u32) {
    STANDS.set(n);
}

fn service<R>(f: impl FnOnce(&mut Service) -> R) -> R {
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
const WORK: usize = 5;

/// A key that nothing wakes.
const STILL: usize = 19;

fn ptr<T>(address: usize) -> *mut T {
    core::ptr::with_exposed_provenance_mut(address)
}

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
}

fn flags(xprt: *mut svc_xprt) -> *mut c_ulong {
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

pub(crate) unsafe extern "C" fn svc_xprt_copy_addrs(_rqst: *mut svc_rqst, _xprt: *mut svc_xprt) {}

/// `svc_delete_xprt()`. The transport stays busy.
unsafe fn svc_delete_xprt(xprt: *mut svc_xprt) {
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

/// `svc_xprt_release()`.
unsafe fn svc_xprt_release(rqst: &mut Rqst) {
    unsafe {
        let xprt = rqst.raw.rq_xprt;
        let ctxt = core::mem::replace(&mut rqst.raw.rq_xprt_ctxt, core::ptr::null_mut());
        (*(*xprt).xpt_ops).xpo_release_ctxt.expect("an operation")(xprt, ctxt);
        rqst.release();
        if rqst.raw.rq_flags & 2 != 0 {
            rqst.raw.rq_flags &= !2;
            (*xprt).xpt_nr_rqsts.counter -= 1;
            svc_xprt_enqueue(xprt);
        }
        rqst.raw.rq_xprt = core::ptr::null_mut();
        svc_xprt_put(xprt);
    }
}

/// `svc_handle_xprt()`, and `svc_process()`.
unsafe fn svc_handle_xprt(rqst: &mut Rqst, xprt: *mut svc_xprt) {
    unsafe {
        let ops = (*xprt).xpt_ops;
        if test_bit(XPT_CLOSE, flags(xprt)) {
            svc_delete_xprt(xprt);
        } else if test_bit(XPT_LISTENER, flags(xprt)) {
            __module_get((*(*xprt).xpt_class).xcl_owner);
            let new = (*ops).xpo_accept.expect("an operation")(xprt);
            if new.is_null() {
                module_put((*(*xprt).xpt_class).xcl_owner);
            } else {
                test_and_change_bit(XPT_TEMP as usize, flags(new), true);
                let stopping = service(|s| {
                    s.transports.push(new.expose_provenance());
                    s.next += 1;
                    s.numbers.insert(new.addr(), s.next);
                    s.stopping
                });
                if stopping {
                    test_and_change_bit(XPT_CLOSE as usize, flags(new), true);
                }
                svc_xprt_received(new);
            }
            svc_xprt_received(xprt);
        } else {
            (*xprt).xpt_nr_rqsts.counter += 1;
            rqst.raw.rq_flags |= 2;
            let len = (*ops).xpo_recvfrom.expect("an operation")(&mut rqst.raw);
            if len > 0 {
                process(rqst, xprt, len);
            }
        }
        rqst.raw.rq_res.len = 0;
        svc_xprt_release(rqst);
    }
}

unsafe fn process(rqst: &mut Rqst, xprt: *mut svc_xprt, len: c_int) {
    let call = rqst.call();
    if call.len() != len as usize {
        sched::fail("a Call is not as long as the transport says");
    }
    sched::preempt();
    let (program, number) = service(|s| (s.program.clone(), s.numbers[&xprt.addr()]));
    let program = program.expect("a program");
    let Some(answer) = program.execute(number, &call) else {
        return;
    };
    rqst.encode(&answer);
    unsafe {
        let ops = (*xprt).xpt_ops;
        if answer.eligible {
            let (at, len) = (answer.head.len() as u32, answer.data.len() as u32);
            (*ops).xpo_result_payload.expect("an operation")(&mut rqst.raw, at, len);
        }
        // An export has accepted the client.
        test_and_change_bit(XPT_PEER_VALID as usize, flags(xprt), true);
        (*ops).xpo_sendto.expect("an operation")(&mut rqst.raw);
    }
}

/// What an nfsd thread does.
fn thread() {
    let pages = service(|s| unsafe { rpcrdma_svc_serv_maxpages(ptr(s.serv)) });
    let mut rqst = Rqst::new(pages);
    loop {
        rqst.fill();
        let next = loop {
            let (next, stopping) = service(|s| (s.queue.pop_front(), s.stopping));
            if next.is_some() || stopping {
                break next;
            }
            sched::wait_for_work(WORK);
        };
        let Some(xprt) = next else {
            break;
        };
        let xprt: *mut svc_xprt = ptr(xprt);
        svc_xprt_get(xprt);
        rqst.raw.rq_xprt = xprt;
        unsafe { svc_handle_xprt(&mut rqst, xprt) };
    }
    rqst.free();
    let left = service(|s| {
        s.threads -= 1;
        s.threads
    });
    if left == 0 {
        sched::wake(STOPPED);
    }
}

/// The key that waits for the end of all threads.
const STOPPED: usize = 6;

/// Starts a service with so many threads, whose longest payload is `payload` bytes. Has the
/// transport class create a listener, unless its module is being unloaded.
pub(crate) fn start(threads: usize, payload: u32, program: Rc<dyn Program>) {
    let serv = Box::into_raw(Box::new(svc_serv {
        sv_max_payload: payload,
        sv_max_mesg: (payload as usize + PAGE_SIZE).next_multiple_of(PAGE_SIZE) as u32,
        sv_pools: core::ptr::null_mut(),
    }));
    service(|s| {
        s.serv = serv.expose_provenance();
        s.program = Some(program);
        s.threads = threads;
        s.stopping = false;
    });
    for number in 0..threads {
        sched::spawn(format!("nfsd {number}"), thread);
    }
    let class: *mut svc_xprt_class = ptr(service(|s| s.class));
    let mut addr = server_address();
    // SAFETY: As `_svc_xprt_create()`.
    unsafe {
        if class.is_null() || !try_module_get((*class).xcl_owner) {
            say!("no listener: the module is unloaded");
            return;
        }
        let create = (*(*class).xcl_ops).xpo_create.expect("an operation");
        let addr = (&raw mut addr).cast();
        let xprt = create(serv, ptr::<net>(NET), addr, 128, 0);
        match kernel::error::from_err_ptr(xprt) {
            Err(error) => {
                module_put((*class).xcl_owner);
                say!("no listener: {error:?}");
            }
            Ok(xprt) => {
                service(|s| s.transports.push(xprt.expose_provenance()));
                svc_xprt_received(xprt);
            }
        }
    }
}

/// The number of transport classes.
pub(crate) fn svc_classes() -> usize {
    service(|s| usize::from(s.class != 0))
}

/// The address of the network namespace. No code accesses it.
pub(crate) const NET: usize = 64;

/// Whether the service runs.
pub(crate) fn runs() -> bool {
    service(|s| s.program.is_some())
}

/// Stops the service: closes all transports, and waits for the threads.
pub(crate) fn stop() {
    service(|s| s.stopping = true);
    // svc_xprt_destroy_all(): until all are gone, since a thread may be accepting one.
    loop {
        let transports = service(|s| s.transports.clone());
        if transports.is_empty() && service(|s| s.queue.is_empty()) {
            break;
        }
        for xprt in transports {
            // A step: with a switch in between, one of these may be gone.
            unsafe { *flags(ptr(xprt)) |= 1 << XPT_CLOSE };
        }
        // svc_clean_up_xprts()
        while let Some(xprt) = service(|s| s.queue.pop_front()) {
            unsafe {
                test_and_change_bit(XPT_CLOSE as usize, flags(ptr(xprt)), true);
                svc_delete_xprt(ptr(xprt));
            }
        }
        let is_idle = |xprt: &usize| unsafe { *flags(ptr(*xprt)) & 1 << XPT_BUSY == 0 };
        while let Some(xprt) = service(|s| s.transports.iter().copied().find(is_idle)) {
            unsafe {
                *flags(ptr(xprt)) |= 1 << XPT_BUSY;
                svc_delete_xprt(ptr(xprt));
            }
        }
        sched::wake(WORK);
        let later = sched::now() + 1_000_000;
        sched::wait_until(STOPPED, later);
    }
    sched::wake(WORK);
    while service(|s| s.threads > 0) {
        sched::wait_on(STOPPED);
    }
    let serv = service(|s| {
        s.program = None;
        s.serv
    });
    drop(unsafe { Box::from_raw(ptr::<svc_serv>(serv)) });
}

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
