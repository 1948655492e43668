// SPDX-License-Identifier: GPL-2.0
/*
 * Delays entry to or return from kernel functions, to widen race windows.
 *
 *	insmod delay_fn.ko function=NAME,... delay_ms=N,... [entry=1,...] [limit=N,...]
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#define MAX_FUNCTIONS 4

static char *function[MAX_FUNCTIONS];
static unsigned int functions;
module_param_array(function, charp, &functions, 0444);

static unsigned int delay_ms[MAX_FUNCTIONS];
module_param_array(delay_ms, uint, NULL, 0444);

static bool entry[MAX_FUNCTIONS];
module_param_array(entry, bool, NULL, 0444);
MODULE_PARM_DESC(entry, "delay entry to the function; by default its return is delayed");

static ulong limit[MAX_FUNCTIONS];
module_param_array(limit, ulong, NULL, 0444);
MODULE_PARM_DESC(limit, "delay only the first N hits; 0 (default) delays all of them");

static ulong hits[MAX_FUNCTIONS];
static unsigned int counts;
module_param_array(hits, ulong, &counts, 0444);
MODULE_PARM_DESC(hits, "number of hits of each probe, delayed or not");

static ulong concurrent[MAX_FUNCTIONS];
module_param_array(concurrent, ulong, &counts, 0444);
MODULE_PARM_DESC(concurrent, "number of hits while another hit was being delayed");

static ulong ended[MAX_FUNCTIONS];
module_param_array(ended, ulong, &counts, 0444);
MODULE_PARM_DESC(ended, "number of delays that have ended");

static atomic_t delaying;

static struct kretprobe probes[MAX_FUNCTIONS];

static void hit(struct kretprobe_instance *instance, bool on_entry)
{
	long i = get_kretprobe(instance) - probes;

	if (entry[i] != on_entry)
		return;
	hits[i]++;
	concurrent[i] += atomic_read(&delaying) > 0;
	if (!delay_ms[i] || (limit[i] && hits[i] > limit[i]))
		return;
	atomic_inc(&delaying);
	mdelay(delay_ms[i]);
	atomic_dec(&delaying);
	ended[i]++;
}

static int entry_handler(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	hit(instance, true);
	return 0;
}

static int return_handler(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	hit(instance, false);
	return 0;
}

static int __init delay_fn_init(void)
{
	unsigned int i;
	int error;

	if (!functions)
		return -EINVAL;
	for (i = 0; i < functions; i++) {
		probes[i].entry_handler = entry_handler;
		probes[i].handler = return_handler;
		probes[i].maxactive = 64;
		probes[i].kp.symbol_name = function[i];
		error = register_kretprobe(&probes[i]);
		if (error)
			goto undo;
	}
	counts = functions;
	return 0;
undo:
	while (i--)
		unregister_kretprobe(&probes[i]);
	return error;
}
module_init(delay_fn_init);

static void __exit delay_fn_exit(void)
{
	unsigned int i;

	for (i = 0; i < functions; i++)
		unregister_kretprobe(&probes[i]);
}
module_exit(delay_fn_exit);

MODULE_DESCRIPTION("Delays entry to or return from kernel functions");
MODULE_LICENSE("GPL");
