// SPDX-License-Identifier: GPL-2.0
/*
 * Has calls of one function return an error after it has done its work.
 *
 *	insmod fail_fn.ko symbol=NAME ret=VALUE [count=N]
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *symbol;
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "name of the function");

static long ret;
module_param(ret, long, 0444);
MODULE_PARM_DESC(ret, "what it returns");

static int count = 1;
module_param(count, int, 0444);
MODULE_PARM_DESC(count, "number of calls to be failed (1)");

static ulong injected;
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "number of calls that were failed");

static atomic_t left;

static int fn_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (atomic_dec_if_positive(&left) >= 0) {
		injected++;
		regs_set_return_value(regs, ret);
	}
	return 0;
}

static struct kretprobe probe = {
	.handler = fn_return,
	.maxactive = 64,
};

static int __init fail_fn_init(void)
{
	if (!symbol)
		return -EINVAL;
	probe.kp.symbol_name = symbol;
	atomic_set(&left, count);
	return register_kretprobe(&probe);
}
module_init(fail_fn_init);

static void __exit fail_fn_exit(void)
{
	unregister_kretprobe(&probe);
}
module_exit(fail_fn_exit);

MODULE_DESCRIPTION("Has calls of one function return an error");
MODULE_LICENSE("GPL");
