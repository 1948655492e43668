/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The input of bindgen. Kbuild lists the headers and functions to bind. Types
 * that the kernel crate binds are taken from there (rust/bindings/mod.rs).
 */

#ifndef _RPCRDMA_BINDINGS_H
#define _RPCRDMA_BINDINGS_H

#include <linux/bvec.h>
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/debug.h>
#include <linux/sunrpc/rpc_rdma.h>
#include <linux/sunrpc/sched.h>
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/svcauth.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/xprt.h>
#include <linux/sunrpc/xprtmultipath.h>

#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

#include "helpers.h"
#include "layout.h"
#include "version.h"
#include <trace/events/rpcrdma_client.h>
#include <trace/events/rpcrdma_device.h>
#include <trace/events/rpcrdma_server.h>

#endif
