// SPDX-License-Identifier: GPL-2.0

//! Structures of SUNRPC: its client, and its server.

use core::ffi::c_void;

use kernel::bindings::{module, spinlock, timer_list};
use kernel::ffi::{c_char, c_int, c_uint, c_ulong, c_ushort};
use pin_init::Zeroable;

use super::types::*;

structures! {
    xdr_buf {
        head: [kvec; 1],
        tail: [kvec; 1],
        pages: *mut *mut page,
        page_base: c_uint,
        page_len: c_uint,
        flags: c_uint,
        buflen: c_uint,
        len: c_uint,
    }
    rpc_program { name: *const c_char, }
    rpc_clnt { cl_clid: c_uint, cl_vers: c_uint, cl_program: *const rpc_program, cl_prog: c_uint, }
    rpc_procinfo {
        p_name: *const c_char,
        p_statidx: c_uint,
        p_decode: Option<unsafe extern "C" fn()>,
    }
    rpc_message { rpc_proc: *const rpc_procinfo, }
    rpc_auth { au_flags: c_ulong, au_flavor: c_uint, }
    rpc_cred { cr_auth: *mut rpc_auth, }
    rpc_wait_queue { qlen: c_ushort, tag: usize, }
    rpc_task {
        tk_status: c_int,
        tk_runstate: c_ulong,
        tk_waitqueue: *mut rpc_wait_queue,
        tk_client: *mut rpc_clnt,
        tk_rqstp: *mut rpc_rqst,
        tk_xprt: *mut rpc_xprt,
        tk_msg: rpc_message,
        tk_flags: c_ushort,
        tk_pid: c_ushort,
        number: usize,
        deadline: u64,
        killed: c_int,
    }
    rpc_rqst {
        rq_xprt: *mut rpc_xprt,
        rq_snd_buf: xdr_buf,
        rq_rcv_buf: xdr_buf,
        rq_task: *mut rpc_task,
        rq_cred: *mut rpc_cred,
        rq_xid: c_uint,
        rq_cong: c_int,
        rq_buffer: *mut c_void,
        rq_callsize: usize,
        rq_rbuffer: *mut c_void,
        rq_rcvsize: usize,
        rq_xmit_bytes_sent: usize,
        rq_reply_bytes_recvd: usize,
        rq_private_buf: xdr_buf,
        rq_timeout: c_ulong,
        rq_connect_cookie: c_uint,
        rq_pin: atomic_t,
        rq_bytes_sent: c_uint,
        rq_xtime: i64,
        rq_ntrans: c_int,
        rq_bc_pa_state: c_ulong,
        queued: c_int,
        next_free: *mut rpc_rqst,
    }
    rpc_timeout {
        to_initval: c_ulong,
        to_maxval: c_ulong,
        to_increment: c_ulong,
        to_retries: c_uint,
        to_exponential: u8,
    }
    xprt_stats {
        bind_count: c_ulong,
        connect_count: c_ulong,
        connect_start: c_ulong,
        connect_time: c_ulong,
        sends: c_ulong,
        recvs: c_ulong,
        bad_xids: c_ulong,
        max_slots: c_ulong,
        req_u: u64,
        bklog_u: u64,
        sending_u: u64,
        pending_u: u64,
    }
    xprt_class {
        list: list_head,
        ident: c_int,
        setup: Option<unsafe extern "C" fn(*mut xprt_create) -> *mut rpc_xprt>,
        owner: *mut module,
        name: [c_char; 32],
    }
    xprt_create {
        ident: c_int,
        net: *mut net,
        srcaddr: *mut sockaddr,
        dstaddr: *mut sockaddr,
        addrlen: usize,
        servername: *const c_char,
        bc_xprt: *mut svc_xprt,
        flags: c_uint,
    }
    rpc_xprt_ops {
        set_buffer_size: Option<unsafe extern "C" fn(*mut rpc_xprt, usize, usize)>,
        reserve_xprt: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut rpc_task) -> c_int>,
        release_xprt: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut rpc_task)>,
        alloc_slot: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut rpc_task)>,
        free_slot: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut rpc_rqst)>,
        rpcbind: Option<unsafe extern "C" fn(*mut rpc_task)>,
        set_port: Option<unsafe extern "C" fn(*mut rpc_xprt, c_ushort)>,
        connect: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut rpc_task)>,
        get_srcaddr: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut c_char, usize) -> c_int>,
        get_srcport: Option<unsafe extern "C" fn(*mut rpc_xprt) -> c_ushort>,
        buf_alloc: Option<unsafe extern "C" fn(*mut rpc_task) -> c_int>,
        buf_free: Option<unsafe extern "C" fn(*mut rpc_task)>,
        prepare_request: Option<unsafe extern "C" fn(*mut rpc_rqst, *mut xdr_buf) -> c_int>,
        send_request: Option<unsafe extern "C" fn(*mut rpc_rqst) -> c_int>,
        wait_for_reply_request: Option<unsafe extern "C" fn(*mut rpc_task)>,
        timer: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut rpc_task)>,
        release_request: Option<unsafe extern "C" fn(*mut rpc_task)>,
        close: Option<unsafe extern "C" fn(*mut rpc_xprt)>,
        destroy: Option<unsafe extern "C" fn(*mut rpc_xprt)>,
        set_connect_timeout: Option<unsafe extern "C" fn(*mut rpc_xprt, c_ulong, c_ulong)>,
        print_stats: Option<unsafe extern "C" fn(*mut rpc_xprt, *mut seq_file)>,
        enable_swap: Option<unsafe extern "C" fn(*mut rpc_xprt) -> c_int>,
        disable_swap: Option<unsafe extern "C" fn(*mut rpc_xprt)>,
        inject_disconnect: Option<unsafe extern "C" fn(*mut rpc_xprt)>,
        bc_setup: Option<unsafe extern "C" fn(*mut rpc_xprt, c_uint) -> c_int>,
        bc_maxpayload: Option<unsafe extern "C" fn(*mut rpc_xprt) -> usize>,
        bc_num_slots: Option<unsafe extern "C" fn(*mut rpc_xprt) -> c_uint>,
        bc_free_rqst: Option<unsafe extern "C" fn(*mut rpc_rqst)>,
        bc_destroy: Option<unsafe extern "C" fn(*mut rpc_xprt, c_uint)>,
    }
}

structures! {
    rb_root {
        rb_node: *mut c_void,
    }
}

#[repr(C)]
pub(crate) struct rpc_xprt {
    pub(crate) kref: kref,
    pub(crate) ops: *const rpc_xprt_ops,
    pub(crate) id: c_uint,
    pub(crate) timeout: *const rpc_timeout,
    pub(crate) addr: __kernel_sockaddr_storage,
    pub(crate) addrlen: usize,
    pub(crate) prot: c_int,
    pub(crate) cong: c_ulong,
    pub(crate) cwnd: c_ulong,
    pub(crate) max_payload: usize,
    pub(crate) binding: rpc_wait_queue,
    pub(crate) sending: rpc_wait_queue,
    pub(crate) pending: rpc_wait_queue,
    pub(crate) backlog: rpc_wait_queue,
    pub(crate) free: *mut rpc_rqst,
    pub(crate) max_reqs: c_uint,
    pub(crate) num_reqs: c_uint,
    pub(crate) state: c_ulong,
    pub(crate) swapper: atomic_t,
    pub(crate) xprt_class: *const xprt_class,
    pub(crate) bind_timeout: c_ulong,
    pub(crate) reestablish_timeout: c_ulong,
    pub(crate) connect_cookie: c_uint,
    pub(crate) timer: timer_list,
    pub(crate) last_used: c_ulong,
    pub(crate) idle_timeout: c_ulong,
    pub(crate) connect_timeout: c_ulong,
    pub(crate) max_reconnect_timeout: c_ulong,
    pub(crate) transport_lock: spinlock,
    pub(crate) reserve_lock: spinlock,
    pub(crate) queue_lock: spinlock,
    pub(crate) recv_queue: rb_root,
    pub(crate) snd_task: *mut rpc_task,
    pub(crate) bc_serv: *mut svc_serv,
    pub(crate) bc_pa_lock: spinlock,
    pub(crate) bc_slot_count: atomic_t,
    pub(crate) stat: xprt_stats,
    pub(crate) xprt_net: *mut net,
    pub(crate) address_strings: [*const c_char; 6],
    pub(crate) bc_xprt: *mut svc_xprt,
    pub(crate) size: usize,
}

// SAFETY: As for `structures!`; all zeroes are a lock.
unsafe impl Zeroable for rpc_xprt {}

structures! {
    svc_xprt_ops {
        xpo_create: Option<
            unsafe extern "C" fn(
                *mut svc_serv,
                *mut net,
                *mut sockaddr,
                c_int,
                c_int,
            ) -> *mut svc_xprt,
        >,
        xpo_accept: Option<unsafe extern "C" fn(*mut svc_xprt) -> *mut svc_xprt>,
        xpo_has_wspace: Option<unsafe extern "C" fn(*mut svc_xprt) -> c_int>,
        xpo_recvfrom: Option<unsafe extern "C" fn(*mut svc_rqst) -> c_int>,
        xpo_sendto: Option<unsafe extern "C" fn(*mut svc_rqst) -> c_int>,
        xpo_result_payload: Option<unsafe extern "C" fn(*mut svc_rqst, c_uint, c_uint) -> c_int>,
        xpo_release_ctxt: Option<unsafe extern "C" fn(*mut svc_xprt, *mut c_void)>,
        xpo_detach: Option<unsafe extern "C" fn(*mut svc_xprt)>,
        xpo_free: Option<unsafe extern "C" fn(*mut svc_xprt)>,
        xpo_kill_temp_xprt: Option<unsafe extern "C" fn(*mut svc_xprt)>,
    }
    svc_xprt_class {
        xcl_name: *const c_char,
        xcl_owner: *mut module,
        xcl_ops: *const svc_xprt_ops,
        xcl_max_payload: c_uint,
        xcl_ident: c_int,
    }
    svc_serv { sv_max_payload: c_uint, sv_max_mesg: c_uint, sv_pools: *mut svc_pool, }
    svc_xprt {
        xpt_class: *mut svc_xprt_class,
        xpt_ops: *const svc_xprt_ops,
        xpt_ref: kref,
        xpt_flags: c_ulong,
        xpt_nr_rqsts: atomic_t,
        xpt_server: *mut svc_serv,
        xpt_net: *mut net,
        xpt_local: __kernel_sockaddr_storage,
        xpt_locallen: usize,
        xpt_remote: __kernel_sockaddr_storage,
        xpt_remotelen: usize,
        xpt_remotebuf: [c_char; 58],
        xpt_bc_xprt: *mut rpc_xprt,
    }
    svc_cred { cr_flavor: c_uint, }
    svc_rqst {
        rq_xprt: *mut svc_xprt,
        rq_xprt_ctxt: *mut c_void,
        rq_deferred: *mut c_void,
        rq_arg: xdr_buf,
        rq_res: xdr_buf,
        rq_maxpages: usize,
        rq_pages: *mut *mut page,
        rq_pages_nfree: usize,
        rq_respages: *mut *mut page,
        rq_next_page: *mut *mut page,
        rq_prot: c_uint,
        rq_flags: c_ulong,
        rq_cred: svc_cred,
    }
}
