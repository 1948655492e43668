// SPDX-License-Identifier: GPL-2.0
/*
 * Drops CM RTUs, the last messages of handshakes, as a lossy network does. The accepting end then
 * learns that its peer is connected when the CM has sent the REP again, or by rdma_notify().
 *
 *	insmod drop_cm_rtu.ko [count=N]
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>

static uint count = 1;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "number of RTUs to drop (1)");

static uint dropped;
module_param(dropped, uint, 0444);
MODULE_PARM_DESC(dropped, "number of RTUs that were dropped");

/* Is called in place of cm_recv_handler(). */
static void drop(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
		 struct ib_mad_recv_wc *recv_wc)
{
	ib_free_recv_mad(recv_wc);
}

static int recv_handler(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_mad_recv_wc *recv_wc = (void *)regs_get_kernel_argument(regs, 2);

	if (recv_wc->recv_buf.mad->mad_hdr.attr_id != CM_RTU_ATTR_ID || dropped == count)
		return 0;
	dropped++;
	instruction_pointer_set(regs, (ulong)drop);
	return 1;
}

static struct kprobe recv_probe = {
	.symbol_name = "cm_recv_handler",
	.pre_handler = recv_handler,
};

static int __init drop_cm_rtu_init(void)
{
	return register_kprobe(&recv_probe);
}
module_init(drop_cm_rtu_init);

static void __exit drop_cm_rtu_exit(void)
{
	unregister_kprobe(&recv_probe);
}
module_exit(drop_cm_rtu_exit);

MODULE_DESCRIPTION("Drops RTUs of the InfiniBand connection manager");
MODULE_LICENSE("GPL");
