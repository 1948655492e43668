// SPDX-License-Identifier: GPL-2.0
/*
 * Fails large allocations by tasks of one name, as fragmented memory would: a krealloc() from
 * NULL, which is how Rust allocates a vector, fails from min_size bytes on.
 *
 *	insmod fail_highorder.ko comm=PREFIX min_size=BYTES
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

static char *comm;
module_param(comm, charp, 0444);
MODULE_PARM_DESC(comm, "fail allocations by tasks whose name has this prefix");

static ulong min_size;
module_param(min_size, ulong, 0444);
MODULE_PARM_DESC(min_size, "smallest allocation to fail, in bytes");

static ulong injected;
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "number of allocations that were failed");

/* krealloc_node_align(p, new_size, ...) */
static int krealloc_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	void *old = (void *)regs_get_kernel_argument(regs, 0);
	ulong size = regs_get_kernel_argument(regs, 1);

	/* Nonzero skips the return handler. */
	return old || size < min_size || strncmp(current->comm, comm, strlen(comm));
}

static int krealloc_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	kfree((void *)regs_return_value(regs));
	regs_set_return_value(regs, 0);
	injected++;
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "krealloc_node_align_noprof",
	.entry_handler = krealloc_entry,
	.handler = krealloc_return,
	.maxactive = 64,
};

static int __init fail_highorder_init(void)
{
	if (!comm || !min_size)
		return -EINVAL;
	return register_kretprobe(&probe);
}
module_init(fail_highorder_init);

static void __exit fail_highorder_exit(void)
{
	unregister_kretprobe(&probe);
}
module_exit(fail_highorder_exit);

MODULE_DESCRIPTION("Fails large allocations");
MODULE_LICENSE("GPL");
