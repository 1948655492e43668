// SPDX-License-Identifier: GPL-2.0
/*
 * Spoils one message that an RDMA device sends: its first RDMA Write names an rkey that the peer
 * does not have or, with error=CODE, the message becomes an RDMA_ERROR with that code. With
 * credits=N, all messages grant or ask for so many credits.
 *
 *	insmod spoil_wr.ko device=NAME [error=CODE | credits=N]
 */
#include <linux/atomic.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/rpc_rdma.h>

#include "hook_device.h"

static uint error;
module_param(error, uint, 0444);
MODULE_PARM_DESC(error, "the code of the RDMA_ERROR; 0 spoils an RDMA Write (0)");

static uint credits;
module_param(credits, uint, 0444);
MODULE_PARM_DESC(credits, "the credits in each message; 0 leaves them as they are (0)");

static ulong injected;
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "number of messages that were spoiled");

static atomic_t left = ATOMIC_INIT(1);

/* The driver's own operation. */
static int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad_wr);

static const struct ib_send_wr *find(const struct ib_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (error || credits ?
			    wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_INV :
			    wr->opcode == IB_WR_RDMA_WRITE)
			break;
	return wr;
}

/* The caller owns the WR, and fills it and the header in anew for each post. */
static void spoil(const struct ib_send_wr *wr)
{
	__be32 *header;

	if (!error && !credits) {
		((struct ib_rdma_wr *)rdma_wr(wr))->rkey = 0;
		return;
	}
	header = ib_virt_dma_to_ptr(wr->sg_list[0].addr);
	if (credits) {
		header[2] = cpu_to_be32(credits);
		return;
	}
	header[3] = rdma_error;
	header[4] = cpu_to_be32(error);
}

static int post_send_spoilt(struct ib_qp *qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad_wr)
{
	const struct ib_send_wr *found = NULL;

	if (qp->qp_type == IB_QPT_RC && (!(error || credits) || ib_uses_virt_dma(qp->device)))
		found = find(wr);
	if (found && (credits || atomic_dec_if_positive(&left) >= 0)) {
		injected++;
		spoil(found);
	}
	return post_send(qp, wr, bad_wr);
}

static void hook(struct ib_device *ibdev)
{
	post_send = ibdev->ops.post_send;
	WRITE_ONCE(ibdev->ops.post_send, post_send_spoilt);
}

static void unhook(struct ib_device *ibdev)
{
	WRITE_ONCE(ibdev->ops.post_send, post_send);
}

HOOK_DEVICE(hook, unhook, no_sleepers);

MODULE_DESCRIPTION("Spoils messages that an RDMA device sends");
MODULE_LICENSE("GPL");
