// SPDX-License-Identifier: GPL-2.0
/*
 * Records the longest rq_arg.head[0] that svc_process() was given. SUNRPC relies on it not to
 * exceed a page.
 *
 *	insmod check_rq_head.ko
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sunrpc/svc.h>

static ulong max_len;
module_param(max_len, ulong, 0444);
MODULE_PARM_DESC(max_len, "longest head so far, in bytes");

/* svc_process(rqstp) */
static int process_handler(struct kprobe *probe, struct pt_regs *regs)
{
	struct svc_rqst *rqstp = (void *)regs_get_kernel_argument(regs, 0);

	/* Two threads may race and lose one update; there are many more Calls. */
	if (rqstp->rq_arg.head[0].iov_len > max_len)
		max_len = rqstp->rq_arg.head[0].iov_len;
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "svc_process",
	.pre_handler = process_handler,
};

static int __init check_rq_head_init(void)
{
	return register_kprobe(&probe);
}
module_init(check_rq_head_init);

static void __exit check_rq_head_exit(void)
{
	unregister_kprobe(&probe);
}
module_exit(check_rq_head_exit);

MODULE_DESCRIPTION("Records the longest head of a Call");
MODULE_LICENSE("GPL");
