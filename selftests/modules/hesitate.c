// SPDX-License-Identifier: GPL-2.0
/*
 * Has functions of the kernel return late, or begin late: what others do meanwhile is
 * done before. For races that are lost too seldom otherwise.
 *
 *	insmod hesitate.ko function=NAME,... milliseconds=N,... [before=1,...] [most=N,...]
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#define MOST 4

static char *function[MOST];
static unsigned int functions;
module_param_array(function, charp, &functions, 0444);

static unsigned int milliseconds[MOST];
module_param_array(milliseconds, uint, NULL, 0444);

static bool before[MOST];
module_param_array(before, bool, NULL, 0444);
MODULE_PARM_DESC(before, "hesitate before the function, not behind it");

static ulong most[MOST];
module_param_array(most, ulong, NULL, 0444);
MODULE_PARM_DESC(most, "hesitate so often, and then no more; 0, which is the default: always");

static ulong times[MOST];
static unsigned int counts;
module_param_array(times, ulong, &counts, 0444);
MODULE_PARM_DESC(times, "how often each was about to begin, or to return");

static ulong meanwhile[MOST];
module_param_array(meanwhile, ulong, &counts, 0444);
MODULE_PARM_DESC(meanwhile, "how many of these times were while somebody hesitated");

static atomic_t hesitating;

static struct kretprobe probes[MOST];

static void hesitate(struct kretprobe_instance *instance, bool now_before)
{
	long which = get_kretprobe(instance) - probes;

	if (before[which] != now_before)
		return;
	times[which]++;
	meanwhile[which] += atomic_read(&hesitating) > 0;
	if (!milliseconds[which] || (most[which] && times[which] > most[which]))
		return;
	atomic_inc(&hesitating);
	mdelay(milliseconds[which]);
	atomic_dec(&hesitating);
}

static int called(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	hesitate(instance, true);
	return 0;
}

static int returned(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	hesitate(instance, false);
	return 0;
}

static int __init hesitate_init(void)
{
	unsigned int each;
	int error;

	if (!functions)
		return -EINVAL;
	for (each = 0; each < functions; each++) {
		probes[each].entry_handler = called;
		probes[each].handler = returned;
		probes[each].maxactive = 64;
		probes[each].kp.symbol_name = function[each];
		error = register_kretprobe(&probes[each]);
		if (error)
			goto undo;
	}
	counts = functions;
	return 0;
undo:
	while (each--)
		unregister_kretprobe(&probes[each]);
	return error;
}
module_init(hesitate_init);

static void __exit hesitate_exit(void)
{
	unsigned int each;

	for (each = 0; each < functions; each++)
		unregister_kretprobe(&probes[each]);
}
module_exit(hesitate_exit);

MODULE_DESCRIPTION("Has functions begin or return late");
MODULE_LICENSE("GPL");
