// SPDX-License-Identifier: GPL-2.0
/*
 * Has the mapping of so many octets of memory fail, and no other: for errors that concern
 * one RPC of many.
 *
 *	insmod unmapped.ko octets=N
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/scatterlist.h>

static ulong octets;
module_param(octets, ulong, 0444);

static ulong times;
module_param(times, ulong, 0444);
MODULE_PARM_DESC(times, "how often it has failed");

/* ib_map_mr_sg(mr, sg, sg_nents, ...) returns how many entries are mapped. */
static int called(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct scatterlist *each, *first = (void *)regs_get_kernel_argument(regs, 1);
	int entry, entries = regs_get_kernel_argument(regs, 2);
	ulong sum = 0;

	for_each_sg(first, each, entries, entry)
		sum += each->length;
	/* Its return is of no interest otherwise. */
	return sum != octets;
}

static int returned(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	times++;
	regs_set_return_value(regs, -EIO);
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "ib_map_mr_sg",
	.entry_handler = called,
	.handler = returned,
	.maxactive = 64,
};

static int __init unmapped_init(void)
{
	return register_kretprobe(&probe);
}
module_init(unmapped_init);

static void __exit unmapped_exit(void)
{
	unregister_kretprobe(&probe);
}
module_exit(unmapped_exit);

MODULE_DESCRIPTION("Has mappings of a size fail");
MODULE_LICENSE("GPL");
