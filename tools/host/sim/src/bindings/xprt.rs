// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client, as in `net/sunrpc/xprt.c`: transports, the send lock, and the congestion
//! window.

use core::cell::RefCell;
use core::ffi::c_void;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kernel::ffi::{c_int, c_ulong};
use kernel::sched;

use super::slots::*;
use super::*;

macro_rules! later {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {$(
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            $(let _ = $arg;)*
            sched::fail(concat!(stringify!($name), "() is not simulated"))
        }
    )*};
}

// What this kernel has no use for.
later! {
    fn rpcb_getport_async(task: *mut rpc_task);
    fn rpcrdma_bc_enqueue(serv: *mut svc_serv, rqst: *mut rpc_rqst);
    fn svc_pool_wake_idle_thread(pool: *mut svc_pool);
}

/// One Call in the window.
const SCALE: c_ulong = 1 << RPC_CWNDSHIFT;

/// The queues of one transport.
#[derive(Default)]
pub(super) struct Queues {
    pub(super) transmit: VecDeque<usize>,
    pub(super) receive: Vec<usize>,
}

#[derive(Default)]
pub(super) struct Sunrpc {
    classes: Vec<usize>,
    pub(super) queues: BTreeMap<usize, Queues>,
    /// The tasks in each wait queue.
    waiting: BTreeMap<usize, VecDeque<usize>>,
    next_id: u32,
    /// The tasks that have not ended.
    pub(super) tasks: BTreeSet<usize>,
}

thread_local! {
    static SUNRPC: RefCell<Sunrpc> = RefCell::default();
}

pub(super) fn sunrpc<R>(f: impl FnOnce(&mut Sunrpc) -> R) -> R {
    SUNRPC.with_borrow_mut(f)
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    SUNRPC.with(|sunrpc| {
        if let Ok(mut sunrpc) = sunrpc.try_borrow_mut() {
            core::mem::forget(core::mem::take(&mut *sunrpc));
        }
    });
}

pub(crate) unsafe extern "C" fn xprt_register_transport(class: *mut xprt_class) -> c_int {
    sunrpc(|s| s.classes.push(class.expose_provenance()));
    0
}

pub(crate) unsafe extern "C" fn xprt_unregister_transport(class: *mut xprt_class) -> c_int {
    sunrpc(|s| s.classes.retain(|other| *other != class.addr()));
    0
}

/// The number of transport classes.
pub(crate) fn classes() -> usize {
    sunrpc(|s| s.classes.len())
}

/// `xprt_create_transport()`.
///
/// # Errors
///
/// `EIO` without such a class, or if its module is being unloaded; or the error of the class.
pub(crate) unsafe fn xprt_create_transport(
    args: &mut xprt_create,
) -> kernel::error::Result<*mut rpc_xprt> {
    // xprt_class_find_by_ident(), with the lock of the list.
    let class = sunrpc(|s| {
        let mut classes = s.classes.iter().map(|class| ptr::<xprt_class>(*class));
        classes.find(|class| unsafe {
            (**class).ident == args.ident && try_module_get((**class).owner)
        })
    });
    let class = class.ok_or(kernel::error::code::EIO)?;
    unsafe {
        let xprt = (*class).setup.expect("an operation")(args);
        module_put((*class).owner);
        kernel::error::from_err_ptr(xprt)
    }
}

pub(crate) unsafe extern "C" fn rpc_task_gfp_mask() -> gfp_t {
    GFP_KERNEL
}

pub(crate) unsafe extern "C" fn rpcrdma_rpc_reply_expected(task: *mut rpc_task) -> bool {
    unsafe { (*(*task).tk_msg.rpc_proc).p_decode.is_some() }
}

pub(crate) unsafe extern "C" fn xprt_alloc(
    net: *mut net,
    size: usize,
    slots: u32,
    most: u32,
) -> *mut rpc_xprt {
    let xprt = unsafe { rpcrdma_kmalloc_node(size, GFP_KERNEL, 0) }.cast::<rpc_xprt>();
    if xprt.is_null() {
        return xprt;
    }
    unsafe {
        (*xprt).kref.refcount.refs.counter = 1;
        (*xprt).cwnd = SCALE;
        (*xprt).max_reqs = most;
        (*xprt).xprt_net = net;
        (*xprt).connect_cookie = 7;
        (*xprt).id = sunrpc(|s| {
            s.next_id += 1;
            s.next_id
        });
        for _ in 0..slots {
            let rqst = rpcrdma_kmalloc_node(size_of::<rpc_rqst>(), GFP_KERNEL, 0);
            if rqst.is_null() {
                free_slots(xprt);
                kfree(xprt.cast());
                return core::ptr::null_mut();
            }
            give_slot(xprt, rqst.cast());
        }
        (*xprt).num_reqs = slots;
        rpcrdma_get_net(net);
    }
    sunrpc(|s| s.queues.insert(xprt.expose_provenance(), Queues::default()));
    xprt
}

pub(crate) unsafe extern "C" fn xprt_free(xprt: *mut rpc_xprt) {
    unsafe { free_slots(xprt) };
    unsafe { rpcrdma_put_net((*xprt).xprt_net) };
    sunrpc(|s| s.queues.remove(&xprt.addr()));
    unsafe { kfree(xprt.cast()) };
}

fn count(xprt: *mut rpc_xprt) -> *mut c_int {
    unsafe { &raw mut (*xprt).kref.refcount.refs.counter }
}

pub(crate) unsafe extern "C" fn xprt_get(xprt: *mut rpc_xprt) -> *mut rpc_xprt {
    unsafe {
        if *count(xprt) <= 0 {
            return core::ptr::null_mut();
        }
        *count(xprt) += 1;
    }
    xprt
}

pub(crate) unsafe extern "C" fn xprt_put(xprt: *mut rpc_xprt) {
    unsafe {
        *count(xprt) -= 1;
        if *count(xprt) > 0 {
            return;
        }
    }
    let address = xprt.expose_provenance();
    // xprt_destroy(), and the work item that it queues.
    sched::spawn("xprt_destroy", move || unsafe {
        let xprt = ptr::<rpc_xprt>(address);
        while test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
            sched::wait_on(lock_key(xprt));
        }
        test_and_change_bit(XPRT_CLOSE_WAIT as usize, state(xprt), false);
        let destroy = (*(*xprt).ops).destroy.expect("an operation");
        sched::module_code(|| destroy(xprt));
    });
}

pub(super) fn state(xprt: *mut rpc_xprt) -> *mut c_ulong {
    unsafe { &raw mut (*xprt).state }
}

fn lock_key(xprt: *mut rpc_xprt) -> usize {
    (1 << 42) ^ xprt.addr()
}

unsafe fn with_transport_lock<R>(xprt: *mut rpc_xprt, f: impl FnOnce() -> R) -> R {
    unsafe {
        (*xprt).transport_lock.take(true);
        let result = f();
        (*xprt).transport_lock.release();
        result
    }
}

pub(super) unsafe fn with_queue_lock<R>(xprt: *mut rpc_xprt, f: impl FnOnce() -> R) -> R {
    unsafe {
        (*xprt).queue_lock.take(true);
        let result = f();
        (*xprt).queue_lock.release();
        result
    }
}

// Tasks that wait.

/// `rpc_sleep_on()`: the task sleeps when its step is done.
pub(crate) unsafe fn sleep_on(queue: *mut rpc_wait_queue, task: *mut rpc_task) {
    unsafe {
        (*task).tk_waitqueue = queue;
        (*task).tk_runstate |= 1 << RPC_TASK_QUEUED;
        (*queue).qlen += 1;
    }
    let (queue, task) = (queue.expose_provenance(), task.expose_provenance());
    sunrpc(|s| s.waiting.entry(queue).or_default().push_back(task));
}

/// Wakes a task, if it is in this queue.
pub(crate) unsafe fn wake_task(
    queue: *mut rpc_wait_queue,
    task: *mut rpc_task,
    status: Option<c_int>,
) -> bool {
    if !sunrpc(|s| s.tasks.contains(&task.addr())) {
        sched::fail("a task is woken that has ended");
    }
    let found = sunrpc(|s| {
        let waiting = s.waiting.get_mut(&queue.addr());
        let at = waiting
            .as_ref()
            .and_then(|w| w.iter().position(|t| *t == task.addr()));
        at.and_then(|at| waiting.and_then(|w| w.remove(at)))
    });
    if found.is_none() {
        return false;
    }
    unsafe {
        (*queue).qlen -= 1;
        if let Some(status) = status {
            (*task).tk_status = status;
        }
        (*task).tk_runstate &= !(1 << RPC_TASK_QUEUED);
    }
    sched::wake(task.addr());
    true
}

unsafe fn wake_all(queue: *mut rpc_wait_queue, status: c_int) {
    while let Some(task) = first(queue) {
        unsafe { wake_task(queue, ptr(task), Some(status)) };
    }
}

pub(super) fn first(queue: *mut rpc_wait_queue) -> Option<usize> {
    sunrpc(|s| {
        s.waiting
            .get(&queue.addr())
            .and_then(|w| w.front().copied())
    })
}

// The send lock.

pub(crate) unsafe extern "C" fn xprt_reserve_xprt_cong(
    xprt: *mut rpc_xprt,
    task: *mut rpc_task,
) -> c_int {
    unsafe {
        if test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
            if task == (*xprt).snd_task {
                return 1;
            }
        } else if test_bit(XPRT_WRITE_SPACE, state(xprt)) || test_bit(XPRT_CWND_WAIT, state(xprt)) {
            clear_locked(xprt);
        } else {
            (*xprt).snd_task = task;
            return 1;
        }
        (*task).tk_status = -(EAGAIN as c_int);
        sleep_on(&raw mut (*xprt).sending, task);
        0
    }
}

/// `xprt_clear_locked()`.
unsafe fn clear_locked(xprt: *mut rpc_xprt) {
    unsafe {
        (*xprt).snd_task = core::ptr::null_mut();
        if test_bit(XPRT_CLOSE_WAIT, state(xprt)) {
            autoclose(xprt);
        } else {
            test_and_change_bit(XPRT_LOCKED as usize, state(xprt), false);
            sched::wake(lock_key(xprt));
        }
    }
}

/// Queues `xprt_autoclose()`, which gets the send lock.
fn autoclose(xprt: *mut rpc_xprt) {
    let address = xprt.expose_provenance();
    sched::spawn("xprt_autoclose", move || unsafe {
        let xprt = ptr::<rpc_xprt>(address);
        test_and_change_bit(XPRT_CLOSE_WAIT as usize, state(xprt), false);
        (*(*xprt).ops).close.expect("an operation")(xprt);
        let release = (*(*xprt).ops).release_xprt.expect("an operation");
        with_transport_lock(xprt, || release(xprt, core::ptr::null_mut()));
    });
}

/// `__xprt_lock_write_next_cong()`.
unsafe fn lock_write_next(xprt: *mut rpc_xprt) {
    unsafe {
        if test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
            return;
        }
        let may =
            !test_bit(XPRT_WRITE_SPACE, state(xprt)) && !test_bit(XPRT_CWND_WAIT, state(xprt));
        let queue = &raw mut (*xprt).sending;
        match first(queue).filter(|_| may) {
            Some(task) => {
                (*xprt).snd_task = ptr(task);
                wake_task(queue, ptr(task), None);
            }
            None => clear_locked(xprt),
        }
    }
}

pub(crate) unsafe extern "C" fn xprt_release_xprt_cong(xprt: *mut rpc_xprt, task: *mut rpc_task) {
    unsafe {
        if (*xprt).snd_task == task {
            clear_locked(xprt);
            lock_write_next(xprt);
        }
    }
}

/// `xprt_lock_write()`.
pub(crate) unsafe fn lock_write(xprt: *mut rpc_xprt, task: *mut rpc_task) -> bool {
    unsafe {
        if test_bit(XPRT_LOCKED, state(xprt)) && (*xprt).snd_task == task {
            return true;
        }
        let reserve = (*(*xprt).ops).reserve_xprt.expect("an operation");
        with_transport_lock(xprt, || reserve(xprt, task)) != 0
    }
}

/// `xprt_release_write()`.
pub(crate) unsafe fn release_write(xprt: *mut rpc_xprt, task: *mut rpc_task) {
    unsafe {
        if (*xprt).snd_task == task {
            let release = (*(*xprt).ops).release_xprt.expect("an operation");
            with_transport_lock(xprt, || release(xprt, task));
        }
    }
}

pub(crate) unsafe extern "C" fn xprt_lock_connect(
    xprt: *mut rpc_xprt,
    task: *mut rpc_task,
    cookie: *mut c_void,
) -> bool {
    unsafe {
        with_transport_lock(xprt, || {
            let locked = test_bit(XPRT_LOCKED, state(xprt)) && (*xprt).snd_task == task;
            if locked {
                test_and_change_bit(XPRT_SND_IS_COOKIE as usize, state(xprt), true);
                (*xprt).snd_task = cookie.cast();
            }
            locked
        })
    }
}

pub(crate) unsafe extern "C" fn xprt_unlock_connect(xprt: *mut rpc_xprt, cookie: *mut c_void) {
    unsafe {
        with_transport_lock(xprt, || {
            if (*xprt).snd_task != cookie.cast() || !test_bit(XPRT_LOCKED, state(xprt)) {
                return;
            }
            (*xprt).snd_task = core::ptr::null_mut();
            test_and_change_bit(XPRT_SND_IS_COOKIE as usize, state(xprt), false);
            (*(*xprt).ops).release_xprt.expect("an operation")(xprt, core::ptr::null_mut());
        });
        sched::wake(lock_key(xprt));
    }
}

pub(crate) unsafe extern "C" fn xprt_write_space(xprt: *mut rpc_xprt) -> bool {
    unsafe {
        if !test_bit(XPRT_WRITE_SPACE, state(xprt)) {
            return false;
        }
        with_transport_lock(xprt, || clear_write_space(xprt))
    }
}

unsafe fn clear_write_space(xprt: *mut rpc_xprt) -> bool {
    unsafe {
        let was = test_and_change_bit(XPRT_WRITE_SPACE as usize, state(xprt), false);
        if was {
            lock_write_next(xprt);
        }
        was
    }
}

pub(crate) unsafe extern "C" fn xprt_wait_for_buffer_space(xprt: *mut rpc_xprt) {
    unsafe { test_and_change_bit(XPRT_WRITE_SPACE as usize, state(xprt), true) };
}

// The congestion window.

pub(crate) unsafe extern "C" fn xprt_request_get_cong(
    xprt: *mut rpc_xprt,
    rqst: *mut rpc_rqst,
) -> bool {
    unsafe {
        if (*rqst).rq_cong != 0 {
            return true;
        }
        with_transport_lock(xprt, || {
            if (*rqst).rq_cong != 0 {
                return true;
            }
            if (*xprt).cong >= (*xprt).cwnd {
                let head = sunrpc(|s| s.queues[&xprt.addr()].transmit.front().copied());
                let moves = head.is_some_and(|head| (*ptr::<rpc_rqst>(head)).rq_cong != 0);
                if !moves {
                    test_and_change_bit(XPRT_CWND_WAIT as usize, state(xprt), true);
                }
                return false;
            }
            (*rqst).rq_cong = 1;
            (*xprt).cong += SCALE;
            credit_law::take(rqst);
            true
        })
    }
}

pub(crate) unsafe extern "C" fn xprt_release_rqst_cong(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if !(*xprt).transport_lock.is_held() {
            sched::fail("xprt_release_rqst_cong() needs the transport lock");
        }
        if (*rqst).rq_cong == 0 {
            return;
        }
        (*rqst).rq_cong = 0;
        match (*xprt).cong.checked_sub(SCALE) {
            Some(left) => (*xprt).cong = left,
            None => sched::fail("a credit is released that is not in use"),
        }
        if (*xprt).cong < (*xprt).cwnd {
            test_and_change_bit(XPRT_CWND_WAIT as usize, state(xprt), false);
        }
        lock_write_next(xprt);
    }
}

// The connection.

pub(crate) unsafe extern "C" fn xprt_wake_pending_tasks(xprt: *mut rpc_xprt, status: c_int) {
    unsafe { wake_all(&raw mut (*xprt).pending, status) };
}

pub(crate) unsafe extern "C" fn xprt_disconnect_done(xprt: *mut rpc_xprt) {
    unsafe {
        with_transport_lock(xprt, || {
            test_and_change_bit(XPRT_CONNECTED as usize, state(xprt), false);
            clear_write_space(xprt);
            if test_and_change_bit(XPRT_CWND_WAIT as usize, state(xprt), false) {
                lock_write_next(xprt);
            }
            xprt_wake_pending_tasks(xprt, -(ENOTCONN as c_int));
        });
    }
}

pub(crate) unsafe extern "C" fn xprt_force_disconnect(xprt: *mut rpc_xprt) {
    unsafe {
        with_transport_lock(xprt, || {
            if test_and_change_bit(XPRT_CLOSE_WAIT as usize, state(xprt), true) {
                return;
            }
            if !test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
                autoclose(xprt);
            } else if !(*xprt).snd_task.is_null() && !test_bit(XPRT_SND_IS_COOKIE, state(xprt)) {
                let status = Some(-(ENOTCONN as c_int));
                wake_task(&raw mut (*xprt).pending, (*xprt).snd_task, status);
            }
        });
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_xprt_clear_connecting(xprt: *mut rpc_xprt) {
    unsafe { test_and_change_bit(XPRT_CONNECTING as usize, state(xprt), false) };
}

pub(crate) unsafe extern "C" fn xprt_reconnect_backoff(xprt: *mut rpc_xprt, least: c_ulong) {
    unsafe {
        let twice = (*xprt).reestablish_timeout << 1;
        (*xprt).reestablish_timeout = twice.min((*xprt).max_reconnect_timeout).max(least);
    }
}

/// `xprt_connect()`.
pub(crate) unsafe fn connect_task(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if !lock_write(xprt, task) {
            return;
        }
        if test_and_change_bit(XPRT_CLOSE_WAIT as usize, state(xprt), false) {
            (*(*xprt).ops).close.expect("an operation")(xprt);
        }
        if !test_bit(XPRT_CONNECTED, state(xprt)) {
            (*rqst).rq_connect_cookie = (*xprt).connect_cookie;
            sleep_on(&raw mut (*xprt).pending, task);
            if test_and_change_bit(XPRT_CONNECTING as usize, state(xprt), true) {
                // The worker that connects has the send lock: this cannot be.
                sched::fail("two tasks connect a transport");
            }
            if test_bit(XPRT_CONNECTED, state(xprt)) {
                rpcrdma_xprt_clear_connecting(xprt);
                wake_task(&raw mut (*xprt).pending, task, Some(0));
            } else {
                (*xprt).stat.connect_start = rpcrdma_jiffies();
                (*(*xprt).ops).connect.expect("an operation")(xprt, task);
            }
        }
        release_write(xprt, task);
    }
}

/// The state of the transports, for the story of a run in which a context waits for ever.
pub(crate) fn describe() -> String {
    sunrpc(|s| {
        let mut text = String::new();
        for (xprt, queues) in &s.queues {
            let raw = ptr::<rpc_xprt>(*xprt);
            let waiting = |queue: *const rpc_wait_queue| unsafe { (*queue).qlen };
            // SAFETY: A transport in the list is there.
            unsafe {
                text += &format!(
                    "{} references, state {:#x}, cong {}, cwnd {}, {} to send, {} sent; \
                     sending {}, pending {}, backlog {}. ",
                    *count(raw),
                    (*raw).state,
                    (*raw).cong >> RPC_CWNDSHIFT,
                    (*raw).cwnd >> RPC_CWNDSHIFT,
                    queues.transmit.len(),
                    queues.receive.len(),
                    waiting(&(*raw).sending),
                    waiting(&(*raw).pending),
                    waiting(&(*raw).backlog),
                );
            }
        }
        text
    })
}
