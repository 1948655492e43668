// SPDX-License-Identifier: GPL-2.0
/*
 * Has an RDMA device fail to invalidate memory, once: the work request ends in an error, or
 * with "refuse" is not even taken.
 *
 *	insmod unfenced.ko device=NAME [refuse=1]
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device;
module_param(device, charp, 0444);

static bool refuse;
module_param(refuse, bool, 0444);
MODULE_PARM_DESC(refuse, "it is not taken");

static ulong times;
module_param(times, ulong, 0444);
MODULE_PARM_DESC(times, "how often one has failed");

static struct ib_device *disturbed;
static atomic_t left = ATOMIC_INIT(1);

/* What the device does itself. */
static int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad);

static int post_unfenced(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	const struct ib_send_wr *each;

	for (each = wr; each; each = each->next)
		if (each->opcode == IB_WR_LOCAL_INV)
			break;
	if (!each || atomic_dec_if_positive(&left) < 0)
		return post_send(qp, wr, bad);
	times++;
	if (refuse) {
		*bad = wr;
		return -ENOMEM;
	}
	/* The work request is its caller's, who writes it anew each time. No such key exists. */
	((struct ib_send_wr *)each)->ex.invalidate_rkey = 0;
	return post_send(qp, wr, bad);
}

static int device_comes(struct ib_device *ibdev)
{
	if (disturbed || strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	disturbed = ibdev;
	post_send = ibdev->ops.post_send;
	ibdev->ops.post_send = post_unfenced;
	return 0;
}

static void device_goes(struct ib_device *ibdev, void *data)
{
	ibdev->ops.post_send = post_send;
}

static struct ib_client client = {
	.name = "unfenced",
	.add = device_comes,
	.remove = device_goes,
};

static int __init unfenced_init(void)
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
module_init(unfenced_init);

static void __exit unfenced_exit(void)
{
	ib_unregister_client(&client);
	/* Whoever has found our function, which does not sleep, is done with it. */
	synchronize_rcu_tasks();
}
module_exit(unfenced_exit);

MODULE_DESCRIPTION("Has an RDMA device fail to invalidate memory");
MODULE_LICENSE("GPL");
