// SPDX-License-Identifier: GPL-2.0
/*
 * Has a function of the kernel return late, or begin late: what others do meanwhile is
 * done before. For races that are lost too seldom otherwise.
 *
 *	insmod hesitate.ko function=NAME milliseconds=N [before=1]
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *function;
module_param(function, charp, 0444);

static unsigned int milliseconds = 1;
module_param(milliseconds, uint, 0444);

static bool before;
module_param(before, bool, 0444);
MODULE_PARM_DESC(before, "hesitate before the function, not behind it");

static unsigned long times;
module_param(times, ulong, 0444);
MODULE_PARM_DESC(times, "how often it was about to begin, or to return");

static void hesitate(void)
{
	times++;
	mdelay(milliseconds);
}

static int called(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (before)
		hesitate();
	return 0;
}

static int returned(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (!before)
		hesitate();
	return 0;
}

static struct kretprobe probe = {
	.entry_handler = called,
	.handler = returned,
	.maxactive = 64,
};

static int __init hesitate_init(void)
{
	if (!function)
		return -EINVAL;
	probe.kp.symbol_name = function;
	return register_kretprobe(&probe);
}
module_init(hesitate_init);

static void __exit hesitate_exit(void)
{
	unregister_kretprobe(&probe);
}
module_exit(hesitate_exit);

MODULE_DESCRIPTION("Has a function begin or return late");
MODULE_LICENSE("GPL");
