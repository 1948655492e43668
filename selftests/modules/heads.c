// SPDX-License-Identifier: GPL-2.0
/*
 * How long the head is of what a service is given: SUNRPC takes it for granted that it is
 * within a page.
 *
 *	insmod heads.ko
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sunrpc/svc.h>

static ulong longest;
module_param(longest, ulong, 0444);
MODULE_PARM_DESC(longest, "octets of the longest head there was");

/* svc_process(rqstp) */
static int processing(struct kprobe *probe, struct pt_regs *regs)
{
	struct svc_rqst *rqstp = (void *)regs_get_kernel_argument(regs, 0);

	/* Of two at a time one may be lost; there are many. */
	if (rqstp->rq_arg.head[0].iov_len > longest)
		longest = rqstp->rq_arg.head[0].iov_len;
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "svc_process",
	.pre_handler = processing,
};

static int __init heads_init(void)
{
	return register_kprobe(&probe);
}
module_init(heads_init);

static void __exit heads_exit(void)
{
	unregister_kprobe(&probe);
}
module_exit(heads_exit);

MODULE_DESCRIPTION("Looks at the heads of Calls");
MODULE_LICENSE("GPL");
