// SPDX-License-Identifier: GPL-2.0
/*
 * Delays ib_post_recv() on an RDMA device's RC QPs. Everything the caller does before the post is
 * done on time, and other threads go on meanwhile.
 *
 *	insmod delay_post_recv.ko device=NAME [delay_ms=N]
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device;
module_param(device, charp, 0444);

static uint delay_ms;
module_param(delay_ms, uint, 0644);

static ulong hits;
module_param(hits, ulong, 0444);
MODULE_PARM_DESC(hits, "number of posts that were delayed");

static struct ib_device *target;
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

static int add_one(struct ib_device *ibdev)
{
	if (strcmp(dev_name(&ibdev->dev), device) || target)
		return -EOPNOTSUPP;
	target = ibdev;
	post_recv = ibdev->ops.post_recv;
	WRITE_ONCE(ibdev->ops.post_recv, post_recv_delayed);
	return 0;
}

static void remove_one(struct ib_device *ibdev, void *data)
{
	WRITE_ONCE(ibdev->ops.post_recv, post_recv);
}

static struct ib_client client = {
	.name = "delay_post_recv",
	.add = add_one,
	.remove = remove_one,
};

static int __init delay_post_recv_init(void)
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
module_init(delay_post_recv_init);

static void __exit delay_post_recv_exit(void)
{
	ib_unregister_client(&client);
	/*
	 * First wait for callers that loaded the address but are not counted yet, then for those
	 * that sleep, and last for those that have left the counter but not the function.
	 */
	synchronize_rcu_tasks();
	while (atomic_read(&callers))
		msleep(10);
	synchronize_rcu_tasks();
}
module_exit(delay_post_recv_exit);

MODULE_DESCRIPTION("Delays ib_post_recv() on an RDMA device");
MODULE_LICENSE("GPL");
