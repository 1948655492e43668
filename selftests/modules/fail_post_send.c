// SPDX-License-Identifier: GPL-2.0
/*
 * Fails ib_post_send() or ib_post_recv() on an RDMA device's RC QPs. One post in every interval
 * fails, in each of these ways equally often:
 *
 *  - bad_wr is the first WR: nothing was posted;
 *  - bad_wr is the last WR: all others were posted;
 *  - bad_wr is unknown: the call leaves it alone and has posted all WRs (siw);
 *
 * and for ib_post_send() alone:
 *
 *  - bad_wr is wrong: it is the first WR, although all but the last were posted (erdma);
 *  - bad_wr is missing: the call leaves it alone and has posted nothing (rdmavt).
 *
 *	insmod fail_post_send.ko device=NAME [send_interval=N] [recv_interval=N] [only=WAY]
 */
#include <linux/atomic.h>

#include "hook_device.h"

static uint send_interval;
module_param(send_interval, uint, 0444);
MODULE_PARM_DESC(send_interval, "fail one ib_post_send() in N; 0 (default) fails none");

static uint recv_interval;
module_param(recv_interval, uint, 0444);
MODULE_PARM_DESC(recv_interval, "fail one ib_post_recv() in N; 0 (default) fails none");

enum way { BAD_FIRST, BAD_LAST, BAD_UNKNOWN, BAD_WRONG, BAD_MISSING, WAYS };

static int only = -1;
module_param(only, int, 0444);
MODULE_PARM_DESC(only, "fail in this way alone, from 0: first, last, unknown, wrong, missing");

static atomic_t posts;
static atomic_t failed[WAYS];

static int get_atomic(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(param->arg));
}

static const struct kernel_param_ops count_ops = { .get = get_atomic };
module_param_cb(bad_first, &count_ops, &failed[BAD_FIRST], 0444);
module_param_cb(bad_last, &count_ops, &failed[BAD_LAST], 0444);
module_param_cb(bad_unknown, &count_ops, &failed[BAD_UNKNOWN], 0444);
module_param_cb(bad_wrong, &count_ops, &failed[BAD_WRONG], 0444);
module_param_cb(bad_missing, &count_ops, &failed[BAD_MISSING], 0444);
MODULE_PARM_DESC(bad_first, "number of posts that failed in this way; so are the other four");

/* The driver's own operations. */
static int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *first,
			const struct ib_send_wr **bad_wr);
static int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *first,
			const struct ib_recv_wr **bad_wr);

/* The QP type excludes QP 1, which belongs to the RDMA core. */
static bool is_due(struct ib_qp *qp, uint interval)
{
	return interval && qp->qp_type == IB_QPT_RC && !((uint)atomic_inc_return(&posts) % interval);
}

/* Selects the way that was used least, or WAYS if the chain does not allow the only one. */
static enum way next_way(enum way end, bool several_wrs)
{
	enum way way, next = WAYS;

	for (way = 0; way < end; way++) {
		if (!several_wrs && (way == BAD_LAST || way == BAD_WRONG))
			continue;
		if (only >= 0 && way != only)
			continue;
		if (next == WAYS || atomic_read(&failed[way]) < atomic_read(&failed[next]))
			next = way;
	}
	if (next != WAYS)
		atomic_inc(&failed[next]);
	return next;
}

/* ib_drain_sq() posts its marker, an empty RDMA Write, once only: it must not fail. */
static bool is_drain_marker(const struct ib_send_wr *first)
{
	return first->opcode == IB_WR_RDMA_WRITE && !first->num_sge;
}

/*
 * A WR that was posted may be freed as soon as it completes, so the list is not joined again after
 * a successful post. The caller reads it from bad_wr on only.
 */
static int post_send_failing(struct ib_qp *qp, const struct ib_send_wr *first,
			     const struct ib_send_wr **bad_wr)
{
	struct ib_send_wr *last = (struct ib_send_wr *)first, *prev = NULL;
	enum way way = WAYS;
	int ret;

	if (!is_drain_marker(first) && is_due(qp, send_interval)) {
		for (; last->next; last = last->next)
			prev = last;
		way = next_way(WAYS, prev);
	}
	switch (way) {
	case WAYS:
		return post_send(qp, first, bad_wr);
	case BAD_UNKNOWN:
		return post_send(qp, first, bad_wr) ?: -EIO;
	case BAD_MISSING:
		return -EINVAL;
	case BAD_FIRST:
		*bad_wr = first;
		return -ENOMEM;
	case BAD_LAST:
	case BAD_WRONG:
		break;
	}
	prev->next = NULL;
	ret = post_send(qp, first, bad_wr);
	if (ret) {
		prev->next = last;
		return ret;
	}
	if (way == BAD_WRONG)
		prev->next = last;
	*bad_wr = way == BAD_WRONG ? first : last;
	return -ENOMEM;
}

static int post_recv_failing(struct ib_qp *qp, const struct ib_recv_wr *first,
			     const struct ib_recv_wr **bad_wr)
{
	struct ib_recv_wr *last = (struct ib_recv_wr *)first, *prev = NULL;
	enum way way = WAYS;
	int ret;

	/* ib_drain_rq() posts its marker, a Receive without SGEs, once only. */
	if (first->num_sge && is_due(qp, recv_interval)) {
		for (; last->next; last = last->next)
			prev = last;
		way = next_way(BAD_WRONG, prev);
	}
	switch (way) {
	case BAD_FIRST:
		*bad_wr = first;
		return -ENOMEM;
	case BAD_LAST:
		break;
	case BAD_UNKNOWN:
		return post_recv(qp, first, bad_wr) ?: -EIO;
	default:
		return post_recv(qp, first, bad_wr);
	}
	prev->next = NULL;
	ret = post_recv(qp, first, bad_wr);
	if (ret) {
		prev->next = last;
		return ret;
	}
	*bad_wr = last;
	return -ENOMEM;
}

static void hook(struct ib_device *ibdev)
{
	post_send = ibdev->ops.post_send;
	post_recv = ibdev->ops.post_recv;
	WRITE_ONCE(ibdev->ops.post_send, post_send_failing);
	WRITE_ONCE(ibdev->ops.post_recv, post_recv_failing);
}

static void unhook(struct ib_device *ibdev)
{
	WRITE_ONCE(ibdev->ops.post_send, post_send);
	WRITE_ONCE(ibdev->ops.post_recv, post_recv);
}

HOOK_DEVICE(hook, unhook, no_sleepers);

MODULE_DESCRIPTION("Fails posts to the queues of an RDMA device");
MODULE_LICENSE("GPL");
