// SPDX-License-Identifier: GPL-2.0
/*
 * Has the mapping of so many octets of memory fail, and no other: for errors that concern
 * one RPC of many. The task of a Call with as many octets of data sleeps a while when that
 * is queued, so that others come to send it; with fail=0 that is all.
 *
 *	insmod unmapped.ko octets=N [milliseconds=N] [fail=0]
 */
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/sched.h>
#include <linux/sunrpc/xprt.h>

static ulong octets;
module_param(octets, ulong, 0444);

static uint milliseconds = 200;
module_param(milliseconds, uint, 0444);
MODULE_PARM_DESC(milliseconds, "how long a task sleeps");

static bool fail = true;
module_param(fail, bool, 0444);
MODULE_PARM_DESC(fail, "the mapping fails");

static ulong times;
module_param(times, ulong, 0444);
MODULE_PARM_DESC(times, "how often it has failed");

/* ib_map_mr_sg(mr, sg, sg_nents, ...) returns how many entries are mapped. */
static int mapping(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct scatterlist *each, *first = (void *)regs_get_kernel_argument(regs, 1);
	int entry, entries = regs_get_kernel_argument(regs, 2);
	ulong sum = 0;

	for_each_sg(first, each, entries, entry)
		sum += sg_dma_len(each);
	/* Its return is of no interest otherwise. */
	return !fail || sum != octets;
}

static int mapped(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	times++;
	regs_set_return_value(regs, -EIO);
	return 0;
}

/* xprt_request_enqueue_transmit(task) */
static int queueing(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct rpc_task *task = (void *)regs_get_kernel_argument(regs, 0);

	*(struct rpc_task **)instance->data = task;
	return task->tk_rqstp->rq_snd_buf.page_len != octets;
}

static int queued(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	rpc_delay(*(struct rpc_task **)instance->data, msecs_to_jiffies(milliseconds));
	return 0;
}

static struct kretprobe probe_map = {
	.kp.symbol_name = "ib_map_mr_sg",
	.entry_handler = mapping,
	.handler = mapped,
	.maxactive = 64,
};

static struct kretprobe probe_queue = {
	.kp.symbol_name = "xprt_request_enqueue_transmit",
	.entry_handler = queueing,
	.handler = queued,
	.data_size = sizeof(struct rpc_task *),
	.maxactive = 64,
};

static struct kretprobe *probes[] = { &probe_map, &probe_queue };

static int __init unmapped_init(void)
{
	return register_kretprobes(probes, ARRAY_SIZE(probes));
}
module_init(unmapped_init);

static void __exit unmapped_exit(void)
{
	unregister_kretprobes(probes, ARRAY_SIZE(probes));
}
module_exit(unmapped_exit);

MODULE_DESCRIPTION("Has mappings of a size fail");
MODULE_LICENSE("GPL");
