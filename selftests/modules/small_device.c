// SPDX-License-Identifier: GPL-2.0
/*
 * Has an RDMA device say that it can do less than it can, for connections that are made
 * meanwhile. A limit that is not given stays, and so does one that is lower already. The
 * device still does what it could do before: who asks it for more is counted.
 *
 * Two things are as real devices have them. With queue_octets, a Send Queue takes memory for
 * entries whose size depends on their elements, in powers of two, and one that takes more is
 * refused although it is within the limits. With max_sgl_rd, the core holds that RDMA Reads
 * are better registered; regions counts those that it makes for that.
 *
 *	insmod small_device.ko device=NAME [max_qp_wr=N] [max_send_sge=N] [queue_octets=N]
 *		[max_sgl_rd=N]
 */
#include <linux/kprobes.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device;
module_param(device, charp, 0444);

static int max_qp_wr;
module_param(max_qp_wr, int, 0444);
MODULE_PARM_DESC(max_qp_wr, "entries of a queue");

static int max_send_sge;
module_param(max_send_sge, int, 0444);
MODULE_PARM_DESC(max_send_sge, "elements of a Send");

static ulong queue_octets;
module_param(queue_octets, ulong, 0444);
MODULE_PARM_DESC(queue_octets, "octets that a Send Queue may take");

static int max_sgl_rd;
module_param(max_sgl_rd, int, 0444);
MODULE_PARM_DESC(max_sgl_rd, "elements of an RDMA Read beyond which regions are better");

static int times;
module_param(times, int, 0444);
MODULE_PARM_DESC(times, "how many devices of that name there have been");

static ulong exceeded;
module_param(exceeded, ulong, 0444);
MODULE_PARM_DESC(exceeded, "how many queue pairs were to have more");

static ulong refused;
module_param(refused, ulong, 0444);
MODULE_PARM_DESC(refused, "how many queue pairs were to have larger Send Queues");

static ulong regions;
module_param(regions, ulong, 0444);
MODULE_PARM_DESC(regions, "how many regions the core has made for transfers");

/* What the device does itself; the same for all devices of a name. */
static int (*create_qp)(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);

/* As mlx5 reckons. */
static int create_small_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	ulong entry = ALIGN(132 + 16UL * init->cap.max_send_sge, 64);

	if (roundup_pow_of_two(init->cap.max_send_wr * entry) > queue_octets) {
		refused++;
		return -ENOMEM;
	}
	return create_qp(qp, init, udata);
}

static void lower(int *attr, int most)
{
	if (most)
		*attr = min(*attr, most);
}

static int device_comes(struct ib_device *ibdev);

/* The data is what the device said before. */
static void device_goes(struct ib_device *ibdev, void *data)
{
	struct ib_device_attr *before = data;

	if (!before)
		return;
	ibdev->attrs.max_qp_wr = before->max_qp_wr;
	ibdev->attrs.max_send_sge = before->max_send_sge;
	ibdev->attrs.max_sgl_rd = before->max_sgl_rd;
	if (queue_octets)
		ibdev->ops.create_qp = create_qp;
	kfree(before);
}

static struct ib_client client = {
	.name = "small_device",
	.add = device_comes,
	.remove = device_goes,
};

static int device_comes(struct ib_device *ibdev)
{
	struct ib_device_attr *before;

	if (strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	before = kmemdup(&ibdev->attrs, sizeof(*before), GFP_KERNEL);
	if (!before)
		return -ENOMEM;
	ib_set_client_data(ibdev, &client, before);
	lower(&ibdev->attrs.max_qp_wr, max_qp_wr);
	lower(&ibdev->attrs.max_send_sge, max_send_sge);
	if (max_sgl_rd)
		ibdev->attrs.max_sgl_rd = max_sgl_rd;
	if (queue_octets) {
		create_qp = ibdev->ops.create_qp;
		ibdev->ops.create_qp = create_small_qp;
	}
	times++;
	return 0;
}

/* ib_create_qp_kernel(pd, qp_init_attr, ...); the core makes room for RDMA contexts itself */
static int creating(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_pd *pd = (void *)regs_get_kernel_argument(regs, 0);
	struct ib_qp_init_attr *init = (void *)regs_get_kernel_argument(regs, 1);
	struct ib_device_attr *attrs = &pd->device->attrs;

	if (strcmp(dev_name(&pd->device->dev), device))
		return 0;
	exceeded += init->cap.max_send_wr > attrs->max_qp_wr ||
		    init->cap.max_recv_wr > attrs->max_qp_wr ||
		    init->cap.max_send_sge > attrs->max_send_sge;
	return 0;
}

/* ib_mr_pool_init(qp, list, nr, ...) */
static int registering(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_qp *qp = (void *)regs_get_kernel_argument(regs, 0);

	if (!strcmp(dev_name(&qp->device->dev), device))
		regions += (int)regs_get_kernel_argument(regs, 2);
	return 0;
}

static struct kprobe on_create = {
	.symbol_name = "ib_create_qp_kernel",
	.pre_handler = creating,
};

static struct kprobe on_register = {
	.symbol_name = "ib_mr_pool_init",
	.pre_handler = registering,
};

static struct kprobe *probes[] = { &on_create, &on_register };

static int __init small_device_init(void)
{
	int error;

	if (!device)
		return -EINVAL;
	error = register_kprobes(probes, ARRAY_SIZE(probes));
	if (error)
		return error;
	error = ib_register_client(&client);
	if (error)
		goto undo;
	if (times)
		return 0;
	error = -ENODEV;
	ib_unregister_client(&client);
undo:
	unregister_kprobes(probes, ARRAY_SIZE(probes));
	return error;
}
module_init(small_device_init);

static void __exit small_device_exit(void)
{
	ib_unregister_client(&client);
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}
module_exit(small_device_exit);

MODULE_DESCRIPTION("Has an RDMA device say that it can do less");
MODULE_LICENSE("GPL");
