// SPDX-License-Identifier: GPL-2.0

//! A client: its transport, and its tasks, each of which is a context.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use kernel::ffi::c_int;
use kernel::sched;
use kernel::seq_file::SeqFile;

use super::rpc_tasks::delay_key;
use super::*;

/// A message to be sent, and the room for its Reply.
pub(crate) struct Call {
    /// Encodes the Call with this XID: head, data, tail.
    pub(crate) encode: Box<dyn Fn(u32, u32) -> (Vec<u8>, Vec<u8>, Vec<u8>)>,
    /// Whether the data of the Call may be reduced.
    pub(crate) is_write: bool,
    /// Bytes of the Reply's head, data and tail.
    pub(crate) room: [usize; 3],
    /// Whether the data of the Reply may be reduced.
    pub(crate) is_read: bool,
    /// Whether the RPC may fail, since mappings do.
    pub(crate) may_fail: bool,
    /// Looks at the Reply.
    pub(crate) decode: Box<dyn Fn(u32, &[u8])>,
}

/// How the tasks of a client behave, as its mount options say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The time for a Reply, in milliseconds; 0 for ever.
    pub(crate) timeout: u32,
    /// How many more of these times there are for an RPC.
    pub(crate) retries: u32,
    /// `RPC_TASK_SOFT` and others.
    pub(crate) flags: u32,
    /// One of so many tasks gets a CPU late after its Reply was overdue.
    pub(crate) late: u32,
}

impl Manner {
    /// Waits for ever.
    pub(crate) const PATIENT: Self = Self {
        timeout: 0,
        retries: 0,
        flags: RPC_TASK_NO_RETRANS_TIMEOUT,
        late: 0,
    };
}

/// A client's transport, with a reference to it.
pub(crate) struct Client {
    pub(crate) xprt: *mut rpc_xprt,
    pub(super) manner: Manner,
    /// The tasks that have not ended.
    pub(super) running: RefCell<Vec<*mut rpc_task>>,
    /// The RPCs that were killed.
    pub(crate) killed: Cell<u64>,
    /// The attempts to connect since a Reply, and when the one that matters began.
    pub(super) connects: Cell<u32>,
    /// When the last Reply came.
    pub(super) replied: Cell<u64>,
    /// The cookie of the connection that a task has found last.
    pub(super) connection: Cell<u32>,
    /// Connections are lost for no reason that asks for a longer delay.
    pub(crate) patient: Cell<bool>,
    /// It is one of nfsd, which makes a Call that has failed again.
    pub(crate) is_nfsd: Cell<bool>,
    pub(super) started: Cell<usize>,
    pub(super) xid: Cell<u32>,
    pub(super) attempts: Cell<u32>,
    /// The RPCs that have failed.
    pub(crate) failures: Cell<u64>,
    /// The tasks that have not ended.
    pub(crate) tasks: Cell<usize>,
}

impl Client {
    /// Creates a transport to the server. Its Calls have XIDs from `first_xid` on.
    ///
    /// # Errors
    ///
    /// That of the class.
    pub(crate) fn new(first_xid: u32, manner: Manner) -> kernel::error::Result<Self> {
        Self::to(server_address(), first_xid, manner)
    }

    /// The same, to this address.
    ///
    /// # Errors
    ///
    /// That of the class.
    pub(crate) fn to(
        mut addr: __kernel_sockaddr_storage,
        first_xid: u32,
        manner: Manner,
    ) -> kernel::error::Result<Self> {
        let mut args = xprt_create {
            ident: xprt_transports_XPRT_TRANSPORT_RDMA,
            net: core::ptr::with_exposed_provenance_mut(svc::NET),
            dstaddr: (&raw mut addr).cast(),
            addrlen: 16,
            ..xprt_create::default()
        };
        let xprt = unsafe { xprt::xprt_create_transport(&mut args)? };
        Ok(Self::of_xprt(xprt, first_xid, manner))
    }

    /// Uses a transport, with the caller's reference.
    pub(super) fn of_xprt(xprt: *mut rpc_xprt, first_xid: u32, manner: Manner) -> Self {
        Self {
            xprt,
            manner,
            running: RefCell::default(),
            killed: Cell::new(0),
            connects: Cell::new(0),
            replied: Cell::new(0),
            connection: Cell::new(0),
            started: Cell::new(0),
            patient: Cell::new(false),
            is_nfsd: Cell::new(false),
            xid: Cell::new(first_xid),
            attempts: Cell::new(0),
            failures: Cell::new(0),
            tasks: Cell::new(0),
        }
    }

    /// A signal kills a task, as `rpc_signal_task()`.
    pub(crate) fn kill(&self) {
        let running = self.running.borrow();
        if running.is_empty() {
            return;
        }
        let task = running[sched::below(running.len())];
        say!("a signal for task {}", unsafe { (*task).number });
        unsafe {
            (*task).killed = 1;
            let status = Some(-(ERESTARTSYS as c_int));
            if !(*task).tk_waitqueue.is_null() {
                wait_queue::wake_task((*task).tk_waitqueue, task, status);
            }
        }
        sched::wake(delay_key(task));
    }

    /// How many connections the transport has had.
    pub(crate) fn connects(&self) -> u64 {
        unsafe { (*self.xprt).stat.connect_count as u64 }
    }

    /// The XID of the next Call.
    pub(crate) fn next_xid(&self) -> u32 {
        self.xid.get()
    }

    /// Puts the reference. There are no tasks any more.
    pub(crate) fn put(&self) {
        unsafe { xprt_put(self.xprt) };
    }

    /// The network breaks the connection off some time, as SUNRPC's fault injection does.
    pub(crate) fn inject_disconnect(self: &Rc<Self>) {
        let this = self.clone();
        unsafe { xprt_get(self.xprt) };
        sched::spawn("network", move || unsafe {
            (*(*this.xprt).ops).inject_disconnect.expect("an operation")(this.xprt);
            this.put();
        });
    }

    /// The numbers of the transport in `mountstats`.
    pub(crate) fn mountstats(&self) -> Vec<u64> {
        let file = SeqFile::default();
        let seq = (&raw const file).cast_mut().cast();
        unsafe { (*(*self.xprt).ops).print_stats.expect("an operation")(self.xprt, seq) };
        let text = file.text();
        let numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
        numbers.collect()
    }

    /// The number of the transport.
    pub(crate) fn id(&self) -> String {
        unsafe { (*self.xprt).id }.to_string()
    }

    /// SUNRPC closes the connection, as after a write to sysfs.
    pub(crate) fn force_disconnect(&self) {
        unsafe { xprt_force_disconnect(self.xprt) };
    }

    /// The time without an RPC after which the idle timer expires.
    pub(crate) fn idle_ns(&self) -> u64 {
        unsafe { (*self.xprt).idle_timeout as u64 * 1_000_000 }
    }

    /// The idle timer expires.
    pub(crate) fn expire_idle_timer(&self) {
        unsafe { xprt_connect::autodisconnect(self.xprt) };
    }

    /// Whether there is no connection, and nothing has the send lock.
    pub(crate) fn is_closed(&self) -> bool {
        let state = unsafe { (*self.xprt).state };
        state & (1 << XPRT_CONNECTED | 1 << XPRT_CLOSE_WAIT | 1 << XPRT_LOCKED) == 0
    }

    /// A task that is not known otherwise finds that its Reply is overdue. Returns whether it has.
    pub(crate) fn find_reply_overdue(self: &Rc<Self>) -> Rc<Cell<bool>> {
        let (this, found) = (self.clone(), Rc::new(Cell::new(false)));
        let done = found.clone();
        let cookie = unsafe { (*self.xprt).connect_cookie };
        sched::spawn("overdue", move || unsafe {
            let mut task = Box::<rpc_task>::default();
            let mut rqst = Box::<rpc_rqst>::default();
            task.tk_rqstp = &raw mut *rqst;
            task.tk_xprt = this.xprt;
            rqst.rq_task = &raw mut *task;
            rqst.rq_xprt = this.xprt;
            rqst.rq_connect_cookie = cookie;
            (*(*this.xprt).ops).timer.expect("an operation")(this.xprt, &raw mut *task);
            done.set(true);
        });
        found
    }

    pub(super) fn key(&self) -> usize {
        (1 << 43) ^ core::ptr::from_ref(self).addr()
    }

    /// Waits until all tasks have ended.
    pub(crate) fn wait(&self) {
        while self.tasks.get() > 0 {
            sched::wait_on(self.key());
        }
    }
}
