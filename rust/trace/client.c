// SPDX-License-Identifier: GPL-2.0
/*
 * The code behind the trace events of tracepoints/client.h, and what Rust calls.
 */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "tracepoints/client.h"
