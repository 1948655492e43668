// SPDX-License-Identifier: GPL-2.0
/*
 * Delays ib_post_recv() on an RDMA device's RC QPs. Everything the caller does before the post is
 * done on time, and other threads go on meanwhile.
 *
 *	insmod delay_post_recv.ko device=NAME [delay_ms=N]
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/preempt.h>

#include "hook_device.h"

static uint delay_ms;
module_param(delay_ms, uint, 0644);

static ulong hits;
module_param(hits, ulong, 0444);
MODULE_PARM_DESC(hits, "number of posts that were delayed");

static atomic_t callers;
static int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *first,
			const struct ib_recv_wr **bad_wr);

/* The QP type excludes QP 1, which belongs to the RDMA core. */
static int post_recv_delayed(struct ib_qp *qp, const struct ib_recv_wr *first,
			     const struct ib_recv_wr **bad_wr)
{
	uint delay = READ_ONCE(delay_ms);
	int ret;

	atomic_inc(&callers);
	if (delay && qp->qp_type == IB_QPT_RC) {
		hits++;
		if (preemptible())
			msleep(delay);
		else
			mdelay(delay);
	}
	ret = post_recv(qp, first, bad_wr);
	atomic_dec(&callers);
	return ret;
}

static void hook(struct ib_device *ibdev)
{
	post_recv = ibdev->ops.post_recv;
	WRITE_ONCE(ibdev->ops.post_recv, post_recv_delayed);
}

static void unhook(struct ib_device *ibdev)
{
	WRITE_ONCE(ibdev->ops.post_recv, post_recv);
}

/*
 * Callers that had loaded the address are counted by now. Waits for those that sleep, and then for
 * those that have left the counter but not the function.
 */
static void wait_for_sleepers(void)
{
	while (atomic_read(&callers))
		msleep(10);
	synchronize_rcu_tasks();
}

HOOK_DEVICE(hook, unhook, wait_for_sleepers);

MODULE_DESCRIPTION("Delays ib_post_recv() on an RDMA device");
MODULE_LICENSE("GPL");
