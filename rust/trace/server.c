// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the trace events of trace/events/rpcrdma_server.h, and the functions
 * that emit them for Rust.
 */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include <trace/events/rpcrdma_server.h>
