// SPDX-License-Identifier: GPL-2.0
/*
 * Lowers the limits that an RDMA device reports, for connections that are made while the module
 * is loaded. A parameter that is not given, or above the device's own limit, changes nothing. The
 * device still accepts more than it reports: over_limit counts the QPs that asked for more.
 *
 * Two parameters imitate real hardware. max_sq_bytes: a Send Queue takes memory in powers of two,
 * by entry size, which depends on the number of SGEs; a larger one is rejected although it is
 * within the reported limits. max_sgl_rd: the RDMA core prefers MRs for RDMA Reads of more SGEs
 * than that; rw_mrs counts the MRs that it allocates for this.
 *
 *	insmod limit_device.ko device=NAME [max_qp_wr=N] [max_send_sge=N] [max_sq_bytes=N]
 *		[max_sge_rd=N] [max_sgl_rd=N]
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
MODULE_PARM_DESC(max_send_sge, "SGEs of a Send");

static int max_sge_rd;
module_param(max_sge_rd, int, 0444);
MODULE_PARM_DESC(max_sge_rd, "SGEs of an RDMA Read");

static ulong max_sq_bytes;
module_param(max_sq_bytes, ulong, 0444);
MODULE_PARM_DESC(max_sq_bytes, "memory of a Send Queue, in bytes");

static int max_sgl_rd;
module_param(max_sgl_rd, int, 0444);
MODULE_PARM_DESC(max_sgl_rd, "SGEs of an RDMA Read from which on MRs are better");

static int devices;
module_param(devices, int, 0444);
MODULE_PARM_DESC(devices, "number of devices of that name so far");

static ulong over_limit;
module_param(over_limit, ulong, 0444);
MODULE_PARM_DESC(over_limit, "number of QPs that asked for more than the device reports");

static ulong sq_rejected;
module_param(sq_rejected, ulong, 0444);
MODULE_PARM_DESC(sq_rejected, "number of QPs rejected because of max_sq_bytes");

static ulong rw_mrs;
module_param(rw_mrs, ulong, 0444);
MODULE_PARM_DESC(rw_mrs, "number of MRs that the RDMA core has allocated for rdma_rw");

/* The driver's own operation; the same for all devices of one name. */
static int (*create_qp)(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);

/* Computes the size of a Send Queue as mlx5 does. */
static int create_qp_limited(struct ib_qp *qp, struct ib_qp_init_attr *init,
			     struct ib_udata *udata)
{
	ulong entry = ALIGN(132 + 16UL * init->cap.max_send_sge, 64);

	if (roundup_pow_of_two(init->cap.max_send_wr * entry) > max_sq_bytes) {
		sq_rejected++;
		return -ENOMEM;
	}
	return create_qp(qp, init, udata);
}

static void lower(int *attr, int limit)
{
	if (limit)
		*attr = min(*attr, limit);
}

static int add_one(struct ib_device *ibdev);

/* The client data is a copy of the driver's attributes. */
static void remove_one(struct ib_device *ibdev, void *data)
{
	struct ib_device_attr *saved = data;

	if (!saved)
		return;
	ibdev->attrs.max_qp_wr = saved->max_qp_wr;
	ibdev->attrs.max_send_sge = saved->max_send_sge;
	ibdev->attrs.max_sge_rd = saved->max_sge_rd;
	ibdev->attrs.max_sgl_rd = saved->max_sgl_rd;
	if (max_sq_bytes)
		ibdev->ops.create_qp = create_qp;
	kfree(saved);
}

static struct ib_client client = {
	.name = "limit_device",
	.add = add_one,
	.remove = remove_one,
};

static int add_one(struct ib_device *ibdev)
{
	struct ib_device_attr *saved;

	if (strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	saved = kmemdup(&ibdev->attrs, sizeof(*saved), GFP_KERNEL);
	if (!saved)
		return -ENOMEM;
	ib_set_client_data(ibdev, &client, saved);
	lower(&ibdev->attrs.max_qp_wr, max_qp_wr);
	lower(&ibdev->attrs.max_send_sge, max_send_sge);
	lower(&ibdev->attrs.max_sge_rd, max_sge_rd);
	if (max_sgl_rd)
		ibdev->attrs.max_sgl_rd = max_sgl_rd;
	if (max_sq_bytes) {
		create_qp = ibdev->ops.create_qp;
		ibdev->ops.create_qp = create_qp_limited;
	}
	devices++;
	return 0;
}

/* ib_create_qp_kernel(pd, qp_init_attr, ...); the core adds room for rdma_rw contexts later. */
static int create_qp_handler(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_pd *pd = (void *)regs_get_kernel_argument(regs, 0);
	struct ib_qp_init_attr *init = (void *)regs_get_kernel_argument(regs, 1);
	struct ib_device_attr *attrs = &pd->device->attrs;

	if (strcmp(dev_name(&pd->device->dev), device))
		return 0;
	over_limit += init->cap.max_send_wr > attrs->max_qp_wr ||
		      init->cap.max_recv_wr > attrs->max_qp_wr ||
		      init->cap.max_send_sge > attrs->max_send_sge;
	return 0;
}

/* ib_mr_pool_init(qp, list, nr, ...) */
static int mr_pool_handler(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_qp *qp = (void *)regs_get_kernel_argument(regs, 0);

	if (!strcmp(dev_name(&qp->device->dev), device))
		rw_mrs += (int)regs_get_kernel_argument(regs, 2);
	return 0;
}

static struct kprobe create_qp_probe = {
	.symbol_name = "ib_create_qp_kernel",
	.pre_handler = create_qp_handler,
};

static struct kprobe mr_pool_probe = {
	.symbol_name = "ib_mr_pool_init",
	.pre_handler = mr_pool_handler,
};

static struct kprobe *probes[] = { &create_qp_probe, &mr_pool_probe };

static int __init limit_device_init(void)
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
	if (devices)
		return 0;
	error = -ENODEV;
	ib_unregister_client(&client);
undo:
	unregister_kprobes(probes, ARRAY_SIZE(probes));
	return error;
}
module_init(limit_device_init);

static void __exit limit_device_exit(void)
{
	ib_unregister_client(&client);
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}
module_exit(limit_device_exit);

MODULE_DESCRIPTION("Lowers the limits that an RDMA device reports");
MODULE_LICENSE("GPL");
