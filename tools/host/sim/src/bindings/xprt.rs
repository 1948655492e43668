// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client, as in `net/sunrpc/xprt.c`: transports, from their class to their end.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kernel::bindings::spinlock;
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
}

/// One Call in the window.
pub(super) const SCALE: c_ulong = 1 << RPC_CWNDSHIFT;

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
    pub(super) waiting: BTreeMap<usize, VecDeque<usize>>,
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
        (*xprt).transport_lock = spinlock::new("rpc_xprt::transport_lock");
        (*xprt).reserve_lock = spinlock::new("rpc_xprt::reserve_lock");
        (*xprt).queue_lock = spinlock::new("rpc_xprt::queue_lock");
        (*xprt).bc_pa_lock = spinlock::new("rpc_xprt::bc_pa_lock");
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
    unsafe { super::backchannel::all_slots_are_free(xprt) };
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

pub(super) fn lock_key(xprt: *mut rpc_xprt) -> usize {
    (1 << 42) ^ xprt.addr()
}

pub(super) unsafe fn with_transport_lock<R>(xprt: *mut rpc_xprt, f: impl FnOnce() -> R) -> R {
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
