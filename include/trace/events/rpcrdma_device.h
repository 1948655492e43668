/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of RDMA devices.
 *
 * All trace headers of this module share one system. Names and formats are
 * those of the C module. The arguments are plain values, so that the events
 * depend on no structure that is private to Rust.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_TRACE_RPCRDMA_DEVICE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RPCRDMA_DEVICE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(rpcrdma_device_class,
	TP_PROTO(const char *device),
	TP_ARGS(device),
	TP_STRUCT__entry(
		__string(name, device)
	),
	TP_fast_assign(
		__assign_str(name);
	),
	TP_printk("device=%s", __get_str(name))
);

#define DEFINE_DEVICE_EVENT(event)					\
	DEFINE_EVENT(rpcrdma_device_class, rpcrdma_client_##event,	\
		TP_PROTO(const char *device),				\
		TP_ARGS(device))

DEFINE_DEVICE_EVENT(add_one);
DEFINE_DEVICE_EVENT(remove_one);
DEFINE_DEVICE_EVENT(wait_on);
DEFINE_DEVICE_EVENT(completion);
DEFINE_DEVICE_EVENT(remove_one_done);

DECLARE_EVENT_CLASS(rpcrdma_device_user_class,
	TP_PROTO(const char *device, u32 index),
	TP_ARGS(device, index),
	TP_STRUCT__entry(
		__string(name, device)
		__field(u32, index)
	),
	TP_fast_assign(
		__assign_str(name);
		__entry->index = index;
	),
	TP_printk("device=%s index=%u", __get_str(name), __entry->index)
);

#define DEFINE_DEVICE_USER_EVENT(event)					\
	DEFINE_EVENT(rpcrdma_device_user_class, rpcrdma_client_##event,	\
		TP_PROTO(const char *device, u32 index),		\
		TP_ARGS(device, index))

DEFINE_DEVICE_USER_EVENT(register);
DEFINE_DEVICE_USER_EVENT(unregister);

#endif

#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rpcrdma_device
#include <trace/define_trace.h>
