// SPDX-License-Identifier: GPL-2.0
/*
 * Has the Receives of an RDMA device's connections be posted late, by who posts them: what that
 * one does before is done before, and others go on meanwhile.
 *
 *	insmod late_receives.ko device=NAME [milliseconds=N]
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

static uint milliseconds;
module_param(milliseconds, uint, 0644);

static ulong times;
module_param(times, ulong, 0444);
MODULE_PARM_DESC(times, "how often Receives were late");

static struct ib_device *found;
static atomic_t inside;
static int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *first,
			const struct ib_recv_wr **bad);

/* The core's own queue pair for the connection manager is not what is tested. */
static int post_recv_late(struct ib_qp *qp, const struct ib_recv_wr *first,
			  const struct ib_recv_wr **bad)
{
	uint now = READ_ONCE(milliseconds);
	int ret;

	atomic_inc(&inside);
	if (now && qp->qp_type == IB_QPT_RC) {
		times++;
		if (preemptible())
			msleep(now);
		else
			mdelay(now);
	}
	ret = post_recv(qp, first, bad);
	atomic_dec(&inside);
	return ret;
}

static int device_comes(struct ib_device *ibdev)
{
	if (strcmp(dev_name(&ibdev->dev), device) || found)
		return -EOPNOTSUPP;
	found = ibdev;
	post_recv = ibdev->ops.post_recv;
	WRITE_ONCE(ibdev->ops.post_recv, post_recv_late);
	return 0;
}

static void device_goes(struct ib_device *ibdev, void *data)
{
	WRITE_ONCE(ibdev->ops.post_recv, post_recv);
}

static struct ib_client client = {
	.name = "late_receives",
	.add = device_comes,
	.remove = device_goes,
};

static int __init late_receives_init(void)
{
	int error;

	if (!device)
		return -EINVAL;
	error = ib_register_client(&client);
	if (error || found)
		return error;
	ib_unregister_client(&client);
	return -ENODEV;
}
module_init(late_receives_init);

static void __exit late_receives_exit(void)
{
	ib_unregister_client(&client);
	/* Whoever was on the way in is counted, and whoever is not counted any more has left. */
	synchronize_rcu_tasks();
	while (atomic_read(&inside))
		msleep(10);
	synchronize_rcu_tasks();
}
module_exit(late_receives_exit);

MODULE_DESCRIPTION("Has Receives be posted late");
MODULE_LICENSE("GPL");
