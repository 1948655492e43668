// SPDX-License-Identifier: GPL-2.0
/*
 * Fails ib_post_send() or ib_post_recv() on an RDMA device's RC QPs, as if a queue were full. One
 * post in every interval fails, in turn in each of the ways that bad_wr can report:
 *
 *  - bad_wr is the first WR: nothing was posted;
 *  - bad_wr is the last WR: all others were posted;
 *  - bad_wr is unknown: all WRs were posted, but the call fails and leaves bad_wr alone.
 *
 *	insmod fail_post_send.ko device=NAME [send_interval=N] [recv_interval=N]
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device;
module_param(device, charp, 0444);

static uint send_interval;
module_param(send_interval, uint, 0444);
MODULE_PARM_DESC(send_interval, "fail one ib_post_send() in N; 0 (default) fails none");

static uint recv_interval;
module_param(recv_interval, uint, 0444);
MODULE_PARM_DESC(recv_interval, "fail one ib_post_recv() in N; 0 (default) fails none");

static atomic_t posts, bad_first, bad_last, bad_unknown;

static int get_atomic(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(param->arg));
}

static const struct kernel_param_ops count_ops = { .get = get_atomic };
module_param_cb(bad_first, &count_ops, &bad_first, 0444);
MODULE_PARM_DESC(bad_first, "number of failed posts whose bad_wr was the first WR");
module_param_cb(bad_last, &count_ops, &bad_last, 0444);
MODULE_PARM_DESC(bad_last, "number of failed posts whose bad_wr was the last WR");
module_param_cb(bad_unknown, &count_ops, &bad_unknown, 0444);
MODULE_PARM_DESC(bad_unknown, "number of failed posts that left bad_wr alone");

static struct ib_device *target;

/* The driver's own operations. */
static int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *first,
			const struct ib_send_wr **bad_wr);
static int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *first,
			const struct ib_recv_wr **bad_wr);

/* The QP type excludes QP 1, which belongs to the RDMA core. */
static bool should_fail(struct ib_qp *qp, uint interval)
{
	return interval && qp->qp_type == IB_QPT_RC && !((uint)atomic_inc_return(&posts) % interval);
}

static atomic_t *next_mode(bool several_wrs)
{
	atomic_t *mode = &bad_first;

	if (several_wrs && atomic_read(&bad_last) <= atomic_read(&bad_first))
		mode = &bad_last;
	else if (atomic_read(&bad_unknown) < atomic_read(&bad_first))
		mode = &bad_unknown;
	atomic_inc(mode);
	return mode;
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
	atomic_t *mode;
	int ret;

	if (is_drain_marker(first) || !should_fail(qp, send_interval))
		return post_send(qp, first, bad_wr);
	for (; last->next; last = last->next)
		prev = last;
	mode = next_mode(prev);
	if (mode == &bad_unknown)
		return post_send(qp, first, bad_wr) ?: -EIO;
	*bad_wr = first;
	if (mode == &bad_last) {
		prev->next = NULL;
		ret = post_send(qp, first, bad_wr);
		if (ret) {
			prev->next = last;
			return ret;
		}
		*bad_wr = last;
	}
	return -ENOMEM;
}

static int post_recv_failing(struct ib_qp *qp, const struct ib_recv_wr *first,
			     const struct ib_recv_wr **bad_wr)
{
	struct ib_recv_wr *last = (struct ib_recv_wr *)first, *prev = NULL;
	atomic_t *mode;
	int ret;

	/* ib_drain_rq() posts its marker, a Receive without SGEs, once only. */
	if (!first->num_sge || !should_fail(qp, recv_interval))
		return post_recv(qp, first, bad_wr);
	for (; last->next; last = last->next)
		prev = last;
	mode = next_mode(prev);
	if (mode == &bad_unknown)
		return post_recv(qp, first, bad_wr) ?: -EIO;
	*bad_wr = first;
	if (mode == &bad_last) {
		prev->next = NULL;
		ret = post_recv(qp, first, bad_wr);
		if (ret) {
			prev->next = last;
			return ret;
		}
		*bad_wr = last;
	}
	return -ENOMEM;
}

static int add_one(struct ib_device *ibdev)
{
	if (target || strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	target = ibdev;
	post_send = ibdev->ops.post_send;
	post_recv = ibdev->ops.post_recv;
	WRITE_ONCE(ibdev->ops.post_send, post_send_failing);
	WRITE_ONCE(ibdev->ops.post_recv, post_recv_failing);
	return 0;
}

static void remove_one(struct ib_device *ibdev, void *data)
{
	WRITE_ONCE(ibdev->ops.post_send, post_send);
	WRITE_ONCE(ibdev->ops.post_recv, post_recv);
}

static struct ib_client client = {
	.name = "fail_post_send",
	.add = add_one,
	.remove = remove_one,
};

static int __init fail_post_send_init(void)
{
	int error;

	if (!device)
		return -EINVAL;
	error = ib_register_client(&client);
	if (error || target)
		return error;
	ib_unregister_client(&client);
	return -ENODEV;
}
module_init(fail_post_send_init);

static void __exit fail_post_send_exit(void)
{
	ib_unregister_client(&client);
	/* The failing posts do not sleep: wait for callers that loaded their addresses. */
	synchronize_rcu_tasks();
}
module_exit(fail_post_send_exit);

MODULE_DESCRIPTION("Fails posts to the queues of an RDMA device");
MODULE_LICENSE("GPL");
