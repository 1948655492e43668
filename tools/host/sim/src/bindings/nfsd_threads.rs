// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the server: the threads of nfsd, and what each does with a transport that has work.

use core::cell::Cell;
use std::rc::Rc;

use kernel::ffi::c_int;
use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::nfsd_rqst::Rqst;
use super::svc::{flags, service, svc_delete_xprt, svc_xprt_get, WORK};
use super::*;

/// The key that waits for the end of all threads.
const STOPPED: usize = 6;

/// `svc_xprt_release()`.
unsafe fn svc_xprt_release(rqst: &mut Rqst) {
    unsafe {
        let xprt = rqst.raw.rq_xprt;
        let ctxt = core::mem::replace(&mut rqst.raw.rq_xprt_ctxt, core::ptr::null_mut());
        (*(*xprt).xpt_ops).xpo_release_ctxt.expect("an operation")(xprt, ctxt);
        rqst.release();
        if rqst.raw.rq_flags & 1 << RQ_DATA != 0 {
            rqst.raw.rq_flags &= !(1 << RQ_DATA);
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
            rqst.raw.rq_flags |= 1 << RQ_DATA;
            // The last Call of the thread was one over TCP.
            rqst.raw.rq_flags &= !(1 << RQ_LOCAL);
            if sched::below(2) == 0 {
                rqst.raw.rq_flags |= 1 << RQ_LOCAL;
            }
            let len = (*ops).xpo_recvfrom.expect("an operation")(&mut rqst.raw);
            if len > 0 {
                let is_local = cm::is_same_host(&(*xprt).xpt_local, &(*xprt).xpt_remote);
                if is_local != (rqst.raw.rq_flags & 1 << RQ_LOCAL != 0) {
                    sched::fail("a Call is not marked as local, or as remote");
                }
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
            if !FROZEN.get() {
                let (next, stopping) = service(|s| (s.queue.pop_front(), s.stopping));
                if next.is_some() || stopping {
                    break next;
                }
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

/// A key that nothing wakes.
const STARTS: usize = 23;

thread_local! {
    static LATE: Cell<u32> = const { Cell::new(0) };
    static FROZEN: Cell<bool> = const { Cell::new(false) };
}

/// Freezes the threads, as a suspend does.
pub(crate) fn freeze() {
    FROZEN.set(true);
}

/// Thaws the threads.
pub(crate) fn thaw() {
    FROZEN.set(false);
    sched::wake(WORK);
}

/// Has the threads of the next service start so many seconds after its listener.
pub(crate) fn start_late(seconds: u32) {
    LATE.set(seconds);
}

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
    let start_threads = move || {
        for number in 0..threads {
            sched::spawn(format!("nfsd {number}"), thread);
        }
    };
    match LATE.take() {
        0 => start_threads(),
        late => sched::spawn("rpc.nfsd", move || {
            let later = sched::now() + u64::from(late) * 1_000_000_000;
            while sched::wait_until(STARTS, later) {}
            start_threads();
        }),
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
                let name = core::ffi::CStr::from_ptr((&raw const (*xprt).xpt_remotebuf).cast());
                if name != c"listener" {
                    sched::fail(format_args!("the name of a listener is {name:?}"));
                }
                service(|s| s.transports.push(xprt.expose_provenance()));
                svc_xprt_received(xprt);
            }
        }
    }
}

/// The pages of the requests of all threads.
pub(crate) fn pages() -> usize {
    // SAFETY: The service runs.
    let of_list =
        service(|s| s.threads * unsafe { rpcrdma_svc_serv_maxpages(ptr(s.serv)) } as usize);
    2 * of_list
}

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
