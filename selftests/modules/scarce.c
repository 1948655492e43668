// SPDX-License-Identifier: GPL-2.0
/*
 * Has no memory in large pieces for the tasks of one name, as if it were in small ones only:
 * what is allocated anew by krealloc(), as Rust's vectors are, fails from this size on.
 *
 *	insmod scarce.ko task=NAME octets=N
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

static char *task;
module_param(task, charp, 0444);
MODULE_PARM_DESC(task, "what the name begins with");

static ulong octets;
module_param(octets, ulong, 0444);

static ulong times;
module_param(times, ulong, 0444);
MODULE_PARM_DESC(times, "how often it has failed");

/* krealloc_node_align(p, new_size, ...) */
static int allocating(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	void *old = (void *)regs_get_kernel_argument(regs, 0);
	ulong size = regs_get_kernel_argument(regs, 1);

	/* Its return is of no interest otherwise. */
	return old || size < octets || strncmp(current->comm, task, strlen(task));
}

static int allocated(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	kfree((void *)regs_return_value(regs));
	regs_set_return_value(regs, 0);
	times++;
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "krealloc_node_align_noprof",
	.entry_handler = allocating,
	.handler = allocated,
	.maxactive = 64,
};

static int __init scarce_init(void)
{
	if (!task || !octets)
		return -EINVAL;
	return register_kretprobe(&probe);
}
module_init(scarce_init);

static void __exit scarce_exit(void)
{
	unregister_kretprobe(&probe);
}
module_exit(scarce_exit);

MODULE_DESCRIPTION("Has large allocations fail");
MODULE_LICENSE("GPL");
