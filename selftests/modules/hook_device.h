/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replaces operations of one RDMA device, which the module parameter device names, while the module
 * is loaded. Include this once, and call HOOK_DEVICE() last.
 */
#ifndef HOOK_DEVICE_H
#define HOOK_DEVICE_H

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "name of the RDMA device");

static struct ib_device *target;

/* Registers a client whose add() calls hook_device(). Fails if there is no device of that name. */
static inline int hook_begin(struct ib_client *client)
{
	int error;

	if (!device)
		return -EINVAL;
	error = ib_register_client(client);
	if (error || target)
		return error;
	ib_unregister_client(client);
	return -ENODEV;
}

static inline int hook_device(struct ib_device *ibdev, void (*hook)(struct ib_device *ibdev))
{
	if (target || strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	target = ibdev;
	hook(ibdev);
	return 0;
}

/* Waits for callers that loaded the address of a function of this module and do not sleep in it. */
static inline void hook_end(struct ib_client *client)
{
	ib_unregister_client(client);
	synchronize_rcu_tasks();
}

/*
 * hook() saves the operations of a device and replaces them, unhook() puts them back, and leave()
 * waits for callers that sleep.
 */
#define HOOK_DEVICE(hook, unhook, leave)						\
	static int add_one(struct ib_device *ibdev)					\
	{										\
		return hook_device(ibdev, hook);					\
	}										\
	static void remove_one(struct ib_device *ibdev, void *data)			\
	{										\
		unhook(ibdev);								\
	}										\
	static struct ib_client client = {						\
		.name = KBUILD_MODNAME, .add = add_one, .remove = remove_one,		\
	};										\
	static int __init hook_init(void)						\
	{										\
		return hook_begin(&client);						\
	}										\
	module_init(hook_init);								\
	static void __exit hook_exit(void)						\
	{										\
		hook_end(&client);							\
		leave();								\
	}										\
	module_exit(hook_exit)

/* For modules whose operations do not sleep. */
static inline void no_sleepers(void)
{
}

#endif
