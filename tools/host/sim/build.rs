// SPDX-License-Identifier: GPL-2.0

//! Says what the simulated kernel has, as `Kbuild` says of a kernel, and makes the functions that
//! `include/trace/events` defines in a kernel.

use std::path::Path;

/// The files that declare trace events.
const EVENTS: &str = "../../../rust/trace";

/// Writes `rust_do_trace_*()` for each event that `rust/trace` declares.
fn write_events() {
    println!("cargo::rerun-if-changed={EVENTS}");
    let mut out = String::new();
    for name in ["client", "server", "device"] {
        let path = Path::new(EVENTS).join(name).with_extension("rs");
        let text = std::fs::read_to_string(path).expect("a file of events");
        for event in text.split("\n    fn ").skip(1) {
            let (event, _) = event.split_once(");").expect("the end of an event");
            let (name, args) = event.split_once('(').expect("arguments");
            let numbers: Vec<usize> = (0..args.matches(": ").count()).collect();
            let list = |item: fn(&usize) -> String| {
                numbers.iter().map(item).collect::<Vec<_>>().join(", ")
            };
            out += &format!(
                "pub(crate) unsafe fn rust_do_trace_{name}<{}>({}) {{ {} }}\n",
                list(|n| format!("T{n}: Traced")),
                list(|n| format!("a{n}: T{n}")),
                numbers
                    .iter()
                    .map(|n| format!("a{n}.copy(); "))
                    .collect::<String>(),
            );
        }
    }
    let directory = std::env::var_os("OUT_DIR").expect("set by cargo");
    let path = Path::new(&directory).join("trace_events.rs");
    std::fs::write(path, out).expect("a writable directory");
}

fn main() {
    write_events();
    println!("cargo::rerun-if-changed=build.rs");
    for has in [
        "atomic",
        "system_dfl_long_wq",
        "rdma_rw_ctx_init_bvec",
        "rq_pages_nfree",
        "xprt_add_backlog_noncongested",
    ] {
        println!("cargo::rustc-cfg=rpcrdma_has_{has}");
    }
    println!("cargo::rustc-cfg=CONFIG_SPARSEMEM_VMEMMAP");
    println!("cargo::rustc-cfg=CONFIG_TRACEPOINTS");
    for cfg in [
        "CONFIG_64BIT",
        "CONFIG_X86_64",
        "CONFIG_KASAN",
        "CONFIG_KCSAN",
        "CONFIG_TRACEPOINTS",
        "CONFIG_SPARSEMEM_VMEMMAP",
        "rpcrdma_has_pin_init_scope",
        "rpcrdma_has_write_pin_init",
        "rpcrdma_has_atomic",
        "rpcrdma_has_system_dfl_long_wq",
        "rpcrdma_has_rdma_rw_ctx_init_bvec",
        "rpcrdma_has_rq_pages_nfree",
        "rpcrdma_has_xprt_add_backlog_noncongested",
        "rpcrdma_has_xprt_svc_shutdown_bc",
    ] {
        println!("cargo::rustc-check-cfg=cfg({cfg})");
    }
}
