// SPDX-License-Identifier: GPL-2.0
/*
 * Fails the next LOCAL_INV of an RDMA device, once: the WR completes in error or, with fail_post=1,
 * ib_post_send() fails.
 *
 *	insmod fail_local_inv.ko device=NAME [fail_post=1]
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device;
module_param(device, charp, 0444);

static bool fail_post;
module_param(fail_post, bool, 0444);
MODULE_PARM_DESC(fail_post, "fail ib_post_send() instead of the WR");

static ulong injected;
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "number of LOCAL_INV that were failed");

static struct ib_device *target;
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

static int add_one(struct ib_device *ibdev)
{
	if (target || strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	target = ibdev;
	post_send = ibdev->ops.post_send;
	ibdev->ops.post_send = post_send_failing;
	return 0;
}

static void remove_one(struct ib_device *ibdev, void *data)
{
	ibdev->ops.post_send = post_send;
}

static struct ib_client client = {
	.name = "fail_local_inv",
	.add = add_one,
	.remove = remove_one,
};

static int __init fail_local_inv_init(void)
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
module_init(fail_local_inv_init);

static void __exit fail_local_inv_exit(void)
{
	ib_unregister_client(&client);
	/* post_send_failing() does not sleep: wait for callers that loaded its address. */
	synchronize_rcu_tasks();
}
module_exit(fail_local_inv_exit);

MODULE_DESCRIPTION("Fails one LOCAL_INV of an RDMA device");
MODULE_LICENSE("GPL");
