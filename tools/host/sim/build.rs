// SPDX-License-Identifier: GPL-2.0

//! Says what the simulated kernel has, as `Kbuild` says of a kernel.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for has in [
        "atomic",
        "system_dfl_long_wq",
        "rdma_rw_ctx_init_bvec",
        "rq_pages_nfree",
        "xprt_add_backlog_noncongested",
        "xprt_enqueue_bc_request",
    ] {
        println!("cargo::rustc-cfg=rpcrdma_has_{has}");
    }
    println!("cargo::rustc-cfg=CONFIG_SPARSEMEM_VMEMMAP");
    for cfg in [
        "CONFIG_64BIT",
        "CONFIG_TRACEPOINTS",
        "CONFIG_SPARSEMEM_VMEMMAP",
        "rpcrdma_has_pin_init_scope",
        "rpcrdma_has_write_pin_init",
        "rpcrdma_has_atomic",
        "rpcrdma_has_system_dfl_long_wq",
        "rpcrdma_has_rdma_rw_ctx_init_bvec",
        "rpcrdma_has_rq_pages_nfree",
        "rpcrdma_has_xprt_add_backlog_noncongested",
        "rpcrdma_has_xprt_enqueue_bc_request",
    ] {
        println!("cargo::rustc-check-cfg=cfg({cfg})");
    }
}
