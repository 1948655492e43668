// SPDX-License-Identifier: GPL-2.0

//! Constants: errors, flags, states, and kinds of events.

use kernel::ffi::c_int;

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
        rdma_driver_id_RDMA_DRIVER_UNKNOWN = 0, rdma_driver_id_RDMA_DRIVER_OCRDMA = 7,
        ib_event_type_IB_EVENT_CQ_ERR = 0, ib_event_type_IB_EVENT_QP_FATAL = 1,
        ib_event_type_IB_EVENT_QP_REQ_ERR = 2, ib_event_type_IB_EVENT_QP_ACCESS_ERR = 3,
        ib_event_type_IB_EVENT_COMM_EST = 4, ib_event_type_IB_EVENT_DEVICE_FATAL = 8,
        ib_mr_type_IB_MR_TYPE_MEM_REG = 0, ib_mr_type_IB_MR_TYPE_SG_GAPS = 1,
        ib_poll_context_IB_POLL_WORKQUEUE = 2,
        ib_qp_attr_mask_IB_QP_STATE = 1, ib_qp_state_IB_QPS_INIT = 1,
        ib_qp_state_IB_QPS_RTS = 3, ib_qp_state_IB_QPS_ERR = 6, ib_qp_type_IB_QPT_RC = 2,
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
        XPT_CHNGBUF = 6, XPT_DEFERRED = 7, XPT_OLD = 8, XPT_LISTENER = 9, XPT_LOCAL = 10,
        XPT_CONG_CTRL = 11, XPT_PEER_VALID = 13,
        RQ_SECURE = 0, RQ_LOCAL = 1, RQ_DATA = 5,
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
