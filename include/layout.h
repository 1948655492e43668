/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C compiler's layout of the structures that C and Rust share. bindgen
 * computes the layout from the same headers by the rules of another compiler,
 * so the module compares the two when it is loaded, and refuses to load if
 * they differ (rust/bindings/layout.rs).
 */

#ifndef _RPCRDMA_LAYOUT_H
#define _RPCRDMA_LAYOUT_H

#include <linux/types.h>

#define RPCRDMA_LAYOUT_ENTRIES 80

/* Sizes and offsets in the order of rust/bindings/layout.rs, then zeroes. */
extern const u32 rpcrdma_layout[RPCRDMA_LAYOUT_ENTRIES];

#endif
