// SPDX-License-Identifier: GPL-2.0
/*
 * Fails ib_map_mr_sg() for memory of one total size, so that the error concerns one RPC out of
 * many. A task whose Call has that many bytes of page data also sleeps for delay_ms right after
 * the Call was queued, so that another task comes to send it. With fail=0 it only sleeps.
 *
 *	insmod fail_dma_map.ko size=BYTES [delay_ms=N] [fail=0]
 */
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/sched.h>
#include <linux/sunrpc/xprt.h>

static ulong size;
module_param(size, ulong, 0444);
MODULE_PARM_DESC(size, "total size of the memory concerned, in bytes");

static uint delay_ms = 200;
module_param(delay_ms, uint, 0444);
MODULE_PARM_DESC(delay_ms, "how long the task sleeps (200)");

static bool fail = true;
module_param(fail, bool, 0444);
MODULE_PARM_DESC(fail, "fail the mapping (1)");

static ulong injected;
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "number of mappings that were failed");

/* ib_map_mr_sg(mr, sg, sg_nents, ...) returns the number of mapped entries. */
static int map_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct scatterlist *sg, *first = (void *)regs_get_kernel_argument(regs, 1);
	int i, nents = regs_get_kernel_argument(regs, 2);
	ulong sum = 0;

	for_each_sg(first, sg, nents, i)
		sum += sg_dma_len(sg);
	/* Nonzero skips the return handler. */
	return !fail || sum != size;
}

static int map_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	injected++;
	regs_set_return_value(regs, -EIO);
	return 0;
}

/* xprt_request_enqueue_transmit(task) */
static int enqueue_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct rpc_task *task = (void *)regs_get_kernel_argument(regs, 0);

	*(struct rpc_task **)instance->data = task;
	return task->tk_rqstp->rq_snd_buf.page_len != size;
}

static int enqueue_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	rpc_delay(*(struct rpc_task **)instance->data, msecs_to_jiffies(delay_ms));
	return 0;
}

static struct kretprobe map_probe = {
	.kp.symbol_name = "ib_map_mr_sg",
	.entry_handler = map_entry,
	.handler = map_return,
	.maxactive = 64,
};

static struct kretprobe enqueue_probe = {
	.kp.symbol_name = "xprt_request_enqueue_transmit",
	.entry_handler = enqueue_entry,
	.handler = enqueue_return,
	.data_size = sizeof(struct rpc_task *),
	.maxactive = 64,
};

static struct kretprobe *probes[] = { &map_probe, &enqueue_probe };

static int __init fail_dma_map_init(void)
{
	return register_kretprobes(probes, ARRAY_SIZE(probes));
}
module_init(fail_dma_map_init);

static void __exit fail_dma_map_exit(void)
{
	unregister_kretprobes(probes, ARRAY_SIZE(probes));
}
module_exit(fail_dma_map_exit);

MODULE_DESCRIPTION("Fails ib_map_mr_sg() for memory of one size");
MODULE_LICENSE("GPL");
