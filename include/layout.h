/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The compiler's view of the structures that C and Rust share. bindgen lays
 * them out from the same headers, but with another compiler's rules; the
 * module refuses to load where the two disagree (rust/bindings/layout.rs).
 */

#ifndef _RPCRDMA_LAYOUT_H
#define _RPCRDMA_LAYOUT_H

#include <linux/types.h>

#define RPCRDMA_LAYOUT_ENTRIES 64

/* Sizes and offsets in the order of rust/bindings/layout.rs, zero at the end. */
extern const u32 rpcrdma_layout[RPCRDMA_LAYOUT_ENTRIES];

#endif
