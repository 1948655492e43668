// SPDX-License-Identifier: GPL-2.0
/*
 * Has an RDMA device refuse what is posted on its connections, as if a queue were full: every so
 * many times, by turns all of a list, and the last of a list whose others are taken. Or it takes
 * all, and fails all the same, without a word of what it has not taken.
 *
 *	insmod unposted.ko device=NAME [sends_every=N] [receives_every=N]
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device;
module_param(device, charp, 0444);

static uint sends_every;
module_param(sends_every, uint, 0444);
MODULE_PARM_DESC(sends_every, "of so many lists for a Send Queue, one is refused");

static uint receives_every;
module_param(receives_every, uint, 0444);
MODULE_PARM_DESC(receives_every, "of so many lists of Receives, one is refused");

static atomic_t posted, whole, partial, unnamed;

static int get_atomic(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(param->arg));
}

static const struct kernel_param_ops count_ops = { .get = get_atomic };
module_param_cb(whole, &count_ops, &whole, 0444);
MODULE_PARM_DESC(whole, "lists that were refused");
module_param_cb(partial, &count_ops, &partial, 0444);
MODULE_PARM_DESC(partial, "lists of which the last one was");
module_param_cb(unnamed, &count_ops, &unnamed, 0444);
MODULE_PARM_DESC(unnamed, "lists that were taken, and refused in words");

static struct ib_device *disturbed;

/* What the device does itself. */
static int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *first,
			const struct ib_send_wr **bad);
static int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *first,
			const struct ib_recv_wr **bad);

/* The core's own queue pair for the connection manager is not what is tested. */
static bool is_due(struct ib_qp *qp, uint every)
{
	return every && qp->qp_type == IB_QPT_RC && !((uint)atomic_inc_return(&posted) % every);
}

static atomic_t *next_way(bool has_several)
{
	atomic_t *way = &whole;

	if (has_several && atomic_read(&partial) <= atomic_read(&whole))
		way = &partial;
	else if (atomic_read(&unnamed) < atomic_read(&whole))
		way = &unnamed;
	atomic_inc(way);
	return way;
}

/* The core's own marker, behind which nothing is under way any more, would not come again. */
static bool is_marker(const struct ib_send_wr *first)
{
	return first->opcode == IB_WR_RDMA_WRITE && !first->num_sge;
}

/*
 * What has been taken may have been freed when it has completed, so it stays as it is: who posted
 * it looks from the first one that was refused on.
 */
static int post_some_sends(struct ib_qp *qp, const struct ib_send_wr *first,
			   const struct ib_send_wr **bad)
{
	struct ib_send_wr *last = (struct ib_send_wr *)first, *before = NULL;
	atomic_t *way;
	int ret;

	if (is_marker(first) || !is_due(qp, sends_every))
		return post_send(qp, first, bad);
	for (; last->next; last = last->next)
		before = last;
	way = next_way(before);
	if (way == &unnamed)
		return post_send(qp, first, bad) ?: -EIO;
	*bad = first;
	if (way == &partial) {
		before->next = NULL;
		ret = post_send(qp, first, bad);
		if (ret) {
			before->next = last;
			return ret;
		}
		*bad = last;
	}
	return -ENOMEM;
}

static int post_some_receives(struct ib_qp *qp, const struct ib_recv_wr *first,
			      const struct ib_recv_wr **bad)
{
	struct ib_recv_wr *last = (struct ib_recv_wr *)first, *before = NULL;
	atomic_t *way;
	int ret;

	/* A marker again. */
	if (!first->num_sge || !is_due(qp, receives_every))
		return post_recv(qp, first, bad);
	for (; last->next; last = last->next)
		before = last;
	way = next_way(before);
	if (way == &unnamed)
		return post_recv(qp, first, bad) ?: -EIO;
	*bad = first;
	if (way == &partial) {
		before->next = NULL;
		ret = post_recv(qp, first, bad);
		if (ret) {
			before->next = last;
			return ret;
		}
		*bad = last;
	}
	return -ENOMEM;
}

static int device_comes(struct ib_device *ibdev)
{
	if (disturbed || strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	disturbed = ibdev;
	post_send = ibdev->ops.post_send;
	post_recv = ibdev->ops.post_recv;
	WRITE_ONCE(ibdev->ops.post_send, post_some_sends);
	WRITE_ONCE(ibdev->ops.post_recv, post_some_receives);
	return 0;
}

static void device_goes(struct ib_device *ibdev, void *data)
{
	WRITE_ONCE(ibdev->ops.post_send, post_send);
	WRITE_ONCE(ibdev->ops.post_recv, post_recv);
}

static struct ib_client client = {
	.name = "unposted",
	.add = device_comes,
	.remove = device_goes,
};

static int __init unposted_init(void)
{
	int error;

	if (!device)
		return -EINVAL;
	error = ib_register_client(&client);
	if (error || disturbed)
		return error;
	ib_unregister_client(&client);
	return -ENODEV;
}
module_init(unposted_init);

static void __exit unposted_exit(void)
{
	ib_unregister_client(&client);
	/* Whoever has found our functions, which do not sleep, is done with them. */
	synchronize_rcu_tasks();
}
module_exit(unposted_exit);

MODULE_DESCRIPTION("Has an RDMA device refuse what is posted");
MODULE_LICENSE("GPL");
