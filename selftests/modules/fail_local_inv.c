// SPDX-License-Identifier: GPL-2.0
/*
 * Fails the next LOCAL_INV of an RDMA device, once: the WR completes in error or, with fail_post=1,
 * ib_post_send() fails.
 *
 *	insmod fail_local_inv.ko device=NAME [fail_post=1]
 */
#include <linux/atomic.h>

#include "hook_device.h"

static bool fail_post;
module_param(fail_post, bool, 0444);
MODULE_PARM_DESC(fail_post, "fail ib_post_send() instead of the WR");

static ulong injected;
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "number of LOCAL_INV that were failed");

static atomic_t left = ATOMIC_INIT(1);

/* The driver's own operation. */
static int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad_wr);

static int post_send_failing(struct ib_qp *qp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad_wr)
{
	const struct ib_send_wr *inv;

	for (inv = wr; inv; inv = inv->next)
		if (inv->opcode == IB_WR_LOCAL_INV)
			break;
	if (!inv || atomic_dec_if_positive(&left) < 0)
		return post_send(qp, wr, bad_wr);
	injected++;
	if (fail_post) {
		*bad_wr = wr;
		return -ENOMEM;
	}
	/* No MR has rkey 0. The caller owns the WR and fills it in anew for each post. */
	((struct ib_send_wr *)inv)->ex.invalidate_rkey = 0;
	return post_send(qp, wr, bad_wr);
}

static void hook(struct ib_device *ibdev)
{
	post_send = ibdev->ops.post_send;
	WRITE_ONCE(ibdev->ops.post_send, post_send_failing);
}

static void unhook(struct ib_device *ibdev)
{
	WRITE_ONCE(ibdev->ops.post_send, post_send);
}

HOOK_DEVICE(hook, unhook, no_sleepers);

MODULE_DESCRIPTION("Fails one LOCAL_INV of an RDMA device");
MODULE_LICENSE("GPL");
