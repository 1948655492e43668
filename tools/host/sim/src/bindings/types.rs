// SPDX-License-Identifier: GPL-2.0

//! Structures and constants.

use core::ffi::c_void;

use kernel::bindings::{module, spinlock, timer_list};
use kernel::ffi::{c_char, c_int, c_uint, c_ulong, c_ushort};
use pin_init::Zeroable;

/// A member of a union, as bindgen presents it. Here each member has memory of its own.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnionField<T>(T);

impl<T> UnionField<T> {
    pub(crate) unsafe fn as_ref(&self) -> &T {
        &self.0
    }

    pub(crate) unsafe fn as_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

// SAFETY: As for the member.
unsafe impl<T: Zeroable> Zeroable for UnionField<T> {}

macro_rules! structures {
    ($($name:ident { $($field:ident: $ty:ty,)* })*) => {$(
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $ty,)*
        }

        // SAFETY: Integers, raw pointers, functions that may be absent, and structures of these.
        unsafe impl Zeroable for $name {}

        impl Default for $name {
            fn default() -> Self {
                pin_init::zeroed()
            }
        }
    )*};
}

macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(crate) struct $name(u8);
    )*};
}

opaque!(dentry, seq_file, svc_pool, tracepoint);

/// A page: the address of its structure is its own, and its neighbour's follows.
#[repr(C)]
pub(crate) struct page([u8; 4096]);

pub(crate) type gfp_t = c_uint;
pub(crate) type loff_t = i64;
pub(crate) type umode_t = c_ushort;
pub(crate) type dma_data_direction = c_uint;
pub(crate) type ib_wc_status = c_uint;

// Memory.
structures! {
    kvec { iov_base: *mut c_void, iov_len: usize, }
    bio_vec { bv_page: *mut page, bv_len: c_uint, bv_offset: c_uint, }
    bvec_iter { bi_size: c_uint, bi_idx: c_uint, bi_bvec_done: c_uint, }
    scatterlist {
        page_link: c_ulong,
        offset: c_uint,
        length: c_uint,
        dma_address: u64,
        dma_length: c_uint,
    }
    atomic_t { counter: c_int, }
    refcount_t { refs: atomic_t, }
    kref { refcount: refcount_t, }
    list_head { next: *mut list_head, prev: *mut list_head, }
}

// Addresses.
structures! {
    sockaddr { sa_family: c_ushort, sa_data: [u8; 14], }
    sockaddr_in { sin_family: c_ushort, sin_port: c_ushort, sin_addr: u32, pad: [u8; 8], }
    sockaddr_in6 {
        sin6_family: c_ushort,
        sin6_port: c_ushort,
        flow: u32,
        addr: [u8; 16],
        scope: u32,
    }
    __kernel_sockaddr_storage { bytes: [u64; 16], }
    net { refs: c_int, }
}

// Files.
structures! {
    file { private_data: *mut c_void, }
    debugfs_short_fops {
        read: Option<unsafe extern "C" fn(*mut file, *mut c_char, usize, *mut loff_t) -> isize>,
        write: Option<unsafe extern "C" fn(*mut file, *const c_char, usize, *mut loff_t) -> isize>,
        llseek: Option<unsafe extern "C" fn(*mut file, loff_t, c_int) -> loff_t>,
    }
    ctl_table_header { path: *const c_char, }
    ctl_table {
        procname: *const c_char,
        data: *mut c_void,
        maxlen: c_int,
        mode: umode_t,
        proc_handler: proc_handler,
        poll: *mut c_void,
        extra1: *mut c_void,
        extra2: *mut c_void,
    }
}

pub(crate) type proc_handler = Option<
    unsafe extern "C" fn(*const ctl_table, c_int, *mut c_void, *mut usize, *mut loff_t) -> c_int,
>;

// Trace events.
structures! {
    rpcrdma_trace_task { task_id: c_uint, client_id: c_uint, }
    rpc_rdma_cid { ci_queue_id: c_uint, ci_completion_id: c_int, }
    rpcrdma_trace_mr {
        mr_id: c_uint,
        nents: c_uint,
        handle: c_uint,
        length: c_uint,
        offset: u64,
        dir: c_uint,
    }
}

// Verbs.
structures! {
    ib_device_attr {
        device_cap_flags: u64,
        kernel_cap_flags: u64,
        max_qp_wr: c_int,
        max_cqe: c_int,
        max_send_sge: c_int,
        max_sge_rd: c_int,
        max_fast_reg_page_list_len: c_uint,
        max_qp_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
    }
    ib_device { attrs: ib_device_attr, name: [c_char; 64], }
    ib_client {
        name: *const c_char,
        add: Option<unsafe extern "C" fn(*mut ib_device) -> c_int>,
        remove: Option<unsafe extern "C" fn(*mut ib_device, *mut c_void)>,
    }
    rdma_restrack_entry { id: c_uint, }
    ib_pd { device: *mut ib_device, local_dma_lkey: c_uint, number: c_uint, }
    ib_cq { cq_context: *mut c_void, res: rdma_restrack_entry, number: c_uint, }
    ib_qp { device: *mut ib_device, qp_num: c_uint, }
    ib_mr {
        lkey: c_uint,
        rkey: c_uint,
        iova: u64,
        length: u64,
        res: rdma_restrack_entry,
    }
    ib_cqe { done: Option<unsafe extern "C" fn(*mut ib_cq, *mut ib_wc)>, }
    ib_sge { addr: u64, length: c_uint, lkey: c_uint, }
    wr_id { wr_cqe: UnionField<*mut ib_cqe>, }
    ex { invalidate_rkey: UnionField<c_uint>, }
    ib_send_wr {
        next: *mut ib_send_wr,
        __bindgen_anon_1: wr_id,
        sg_list: *mut ib_sge,
        num_sge: c_int,
        opcode: c_uint,
        send_flags: c_int,
        ex: ex,
    }
    ib_rdma_wr { wr: ib_send_wr, remote_addr: u64, rkey: c_uint, }
    ib_reg_wr { wr: ib_send_wr, mr: *mut ib_mr, key: c_uint, access: c_int, }
    ib_recv_wr {
        next: *mut ib_recv_wr,
        __bindgen_anon_1: wr_id,
        sg_list: *mut ib_sge,
        num_sge: c_int,
    }
    ib_wc {
        __bindgen_anon_1: wr_id,
        status: ib_wc_status,
        opcode: c_uint,
        vendor_err: c_uint,
        byte_len: c_uint,
        ex: ex,
        wc_flags: c_int,
    }
    ib_qp_cap {
        max_send_wr: c_uint,
        max_recv_wr: c_uint,
        max_send_sge: c_uint,
        max_recv_sge: c_uint,
        max_rdma_ctxs: c_uint,
    }
    ib_event { event: c_uint, }
    ib_qp_init_attr {
        event_handler: Option<unsafe extern "C" fn(*mut ib_event, *mut c_void)>,
        qp_context: *mut c_void,
        send_cq: *mut ib_cq,
        recv_cq: *mut ib_cq,
        cap: ib_qp_cap,
        sq_sig_type: c_uint,
        qp_type: c_uint,
        port_num: c_uint,
    }
    ib_qp_attr { qp_state: c_uint, }
    rdma_rw_ctx { state: *mut c_void, }
}

// The connection manager.
structures! {
    rdma_addr { src_addr: __kernel_sockaddr_storage, dst_addr: __kernel_sockaddr_storage, }
    rdma_route { addr: rdma_addr, }
    rdma_conn_param {
        private_data: *const c_void,
        private_data_len: u8,
        responder_resources: u8,
        initiator_depth: u8,
        retry_count: u8,
        rnr_retry_count: u8,
    }
    rdma_cm_event_param { conn: UnionField<rdma_conn_param>, }
    rdma_cm_event { event: c_uint, status: c_int, param: rdma_cm_event_param, }
}

pub(crate) type rdma_cm_event_handler =
    Option<unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_cm_event) -> c_int>;

#[repr(C)]
pub(crate) struct rdma_cm_id {
    pub(crate) device: *mut ib_device,
    pub(crate) context: *mut c_void,
    pub(crate) qp: *mut ib_qp,
    pub(crate) event_handler: rdma_cm_event_handler,
    pub(crate) route: rdma_route,
    pub(crate) port_num: c_uint,
    pub(crate) handler_mutex: spinlock,
    pub(crate) number: usize,
}

// SUNRPC.
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

macro_rules! constants {
    ($($ty:ty { $($name:ident = $value:expr,)* })*) => {
        $($(pub(crate) const $name: $ty = $value;)*)*
    };
}

constants! {
    u32 {
        AF_INET = 2, AF_INET6 = 10,
        EIO = 5, EAGAIN = 11, ENOMEM = 12, EINVAL = 22, ENODEV = 19, EPIPE = 32, EBADSLT = 57,
        EPROTO = 71,
        EMSGSIZE = 90, EAFNOSUPPORT = 97, EADDRINUSE = 98, EADDRNOTAVAIL = 99, ENETDOWN = 100,
        ENETUNREACH = 101, ECONNRESET = 104, ENOBUFS = 105, ENOTCONN = 107, ETIMEDOUT = 110,
        ECONNREFUSED = 111, EHOSTUNREACH = 113,
        PF_MEMALLOC = 0x800, PF_MEMALLOC_NOIO = 0x80000,
        GFP_KERNEL = 1, GFP_NOWAIT = 4,
        IPPROTO_TCP = 6, IPPROTO_MAX = 263, RPCSVC_MAXPAYLOAD = 1 << 20,
        IB_DEVICE_NAME_MAX = 64,
        dma_data_direction_DMA_TO_DEVICE = 1, dma_data_direction_DMA_FROM_DEVICE = 2,
        dma_data_direction_DMA_NONE = 3,
        ib_access_flags_IB_ACCESS_LOCAL_WRITE = 1,
        ib_access_flags_IB_ACCESS_REMOTE_WRITE = 2,
        ib_access_flags_IB_ACCESS_REMOTE_READ = 4,
        ib_cm_rej_reason_IB_CM_REJ_STALE_CONN = 10,
        ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED = 28,
        ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS = 1 << 21,
        ib_kernel_cap_flags_IBK_SG_GAPS_REG = 1 << 6,
        ib_event_type_IB_EVENT_CQ_ERR = 0, ib_event_type_IB_EVENT_QP_FATAL = 1,
        ib_event_type_IB_EVENT_QP_REQ_ERR = 2, ib_event_type_IB_EVENT_QP_ACCESS_ERR = 3,
        ib_event_type_IB_EVENT_COMM_EST = 4, ib_event_type_IB_EVENT_DEVICE_FATAL = 8,
        ib_mr_type_IB_MR_TYPE_MEM_REG = 0, ib_mr_type_IB_MR_TYPE_SG_GAPS = 1,
        ib_poll_context_IB_POLL_WORKQUEUE = 2,
        ib_qp_attr_mask_IB_QP_STATE = 1, ib_qp_state_IB_QPS_ERR = 6, ib_qp_type_IB_QPT_RC = 2,
        ib_sig_type_IB_SIGNAL_REQ_WR = 1,
        ib_wc_opcode_IB_WC_RECV = 128, ib_wc_flags_IB_WC_WITH_INVALIDATE = 8,
        ib_wc_status_IB_WC_SUCCESS = 0, ib_wc_status_IB_WC_LOC_LEN_ERR = 1,
        ib_wc_status_IB_WC_LOC_PROT_ERR = 4, ib_wc_status_IB_WC_WR_FLUSH_ERR = 5,
        ib_wc_status_IB_WC_REM_ACCESS_ERR = 10, ib_wc_status_IB_WC_RETRY_EXC_ERR = 12,
        ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR = 13, ib_wc_status_IB_WC_GENERAL_ERR = 21,
        ib_wr_opcode_IB_WR_RDMA_WRITE = 0, ib_wr_opcode_IB_WR_SEND = 2,
        ib_wr_opcode_IB_WR_RDMA_READ = 4, ib_wr_opcode_IB_WR_SEND_WITH_INV = 9,
        ib_wr_opcode_IB_WR_LOCAL_INV = 10, ib_wr_opcode_IB_WR_REG_MR = 32,
        rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED = 0,
        rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR = 1,
        rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED = 2,
        rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR = 3,
        rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST = 4,
        rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR = 6,
        rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE = 7,
        rdma_cm_event_type_RDMA_CM_EVENT_REJECTED = 8,
        rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED = 9,
        rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED = 10,
        rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL = 11,
        rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE = 14,
        rdma_ucm_port_space_RDMA_PS_TCP = 0x106,
        RPC_CWNDSHIFT = 8,
        rpc_display_format_t_RPC_DISPLAY_ADDR = 0, rpc_display_format_t_RPC_DISPLAY_PORT = 1,
        rpc_display_format_t_RPC_DISPLAY_PROTO = 2, rpc_display_format_t_RPC_DISPLAY_HEX_ADDR = 3,
        rpc_display_format_t_RPC_DISPLAY_HEX_PORT = 4, rpc_display_format_t_RPC_DISPLAY_NETID = 5,
        ERESTARTSYS = 512,
        RPC_TASK_SOFT = 0x200, RPC_TASK_SOFTCONN = 0x400, RPC_TASK_SENT = 0x800,
        RPC_TASK_NO_RETRANS_TIMEOUT = 0x4000,
        RPC_TASK_QUEUED = 1, RPC_TASK_NEED_XMIT = 3, RPC_TASK_NEED_RECV = 4,
        RPCAUTH_AUTH_DATATOUCH = 1, RPC_BC_PA_IN_USE = 0,
        XDRBUF_READ = 1, XDRBUF_WRITE = 2, XDRBUF_SPARSE_PAGES = 4,
        XPRT_LOCKED = 0, XPRT_CONNECTED = 1, XPRT_CONNECTING = 2, XPRT_CLOSE_WAIT = 3,
        XPRT_BOUND = 4, XPRT_CLOSING = 6, XPRT_WRITE_SPACE = 8, XPRT_CONGESTED = 9,
        XPRT_CWND_WAIT = 10, XPRT_SND_IS_COOKIE = 12,
        XPT_BUSY = 0, XPT_CONN = 1, XPT_CLOSE = 2, XPT_DATA = 3, XPT_TEMP = 4, XPT_DEAD = 5,
        XPT_CHNGBUF = 6, XPT_DEFERRED = 7, XPT_OLD = 8, XPT_LISTENER = 9, XPT_CONG_CTRL = 11,
        XPT_PEER_VALID = 13,
        RQ_SECURE = 0,
        rpc_auth_flavors_RPC_AUTH_MAXFLAVOR = 8,
        rpc_auth_flavors_RPC_AUTH_GSS_KRB5 = 390_003,
        rpc_auth_flavors_RPC_AUTH_GSS_KRB5I = 390_004,
        rpc_auth_flavors_RPC_AUTH_GSS_LKEY = 390_006,
        rpc_auth_flavors_RPC_AUTH_GSS_SPKM = 390_009,
    }
    c_int {
        ib_send_flags_IB_SEND_SIGNALED = 2,
        NUMA_NO_NODE = -1,
        xprt_transports_XPRT_TRANSPORT_RDMA = 256,
        xprt_transports_XPRT_TRANSPORT_BC_RDMA = 256 | (1 << 30),
    }
}
