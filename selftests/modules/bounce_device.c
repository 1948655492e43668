// SPDX-License-Identifier: GPL-2.0
/*
 * Has software RDMA devices reach memory as hardware does behind an IOMMU, where caches are
 * not coherent. Such a device is given the addresses of copies. What is in a copy and what is in
 * memory is the same only after the one has been mapped, synced or unmapped for the other. Runs
 * of whole pages become one. What goes wrong is told with a warning, and counted in faults:
 *
 *  - a mapping ends that there is not, or with other arguments than it began with;
 *  - the device has written to what it may only read, beside a mapping, or after its end;
 *  - the processor has written beside what is mapped to be written, in one line of its cache;
 *  - memory is taken back twice and was not given to the device in between.
 *
 * Devices that come while the module is here keep it. It counts what is mapped, and has every
 * so many mappings fail.
 *
 *	insmod bounce.ko [fail_every=N] [fail_lists=1]
 */
#include <linux/cleanup.h>
#include <linux/dma-map-ops.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "bounce.h"

static struct platform_device *device;

static dma_addr_t bounce_map_phys(struct device *dev, phys_addr_t phys, size_t size,
				  enum dma_data_direction direction, unsigned long attrs)
{
	struct piece piece = { .memory = phys_to_virt(phys), .octets = size };

	return bounce_begin(&piece, 1, offset_in_page(phys), direction, NO_LIST);
}

static void bounce_unmap_phys(struct device *dev, dma_addr_t address, size_t size,
			      enum dma_data_direction direction, unsigned long attrs)
{
	bounce_end(address, size, direction, attrs);
}

/* Whether the second entry can be behind the first one in a run, as for an IOMMU. */
static bool joins(struct scatterlist *first, struct scatterlist *second)
{
	return !offset_in_page(first->offset + first->length) && !offset_in_page(second->offset);
}

static void end_list(struct scatterlist *list, int runs, enum dma_data_direction direction,
		     unsigned long attrs)
{
	struct scatterlist *each;
	int i;

	for_each_sg(list, each, runs, i)
		bounce_end(sg_dma_address(each), sg_dma_len(each), direction, attrs);
}

static int bounce_map_sg(struct device *dev, struct scatterlist *list, int entries,
			 enum dma_data_direction direction, unsigned long attrs)
{
	size_t octets, most = dma_get_max_seg_size(dev);
	struct scatterlist *next = list, *run = list, *last;
	struct piece *piece __free(kfree) = NULL;
	int taken = 0, pieces, runs = 0;
	dma_addr_t address;

	piece = kcalloc(entries, sizeof(*piece), GFP_ATOMIC | __GFP_NOWARN);
	if (!piece)
		return -ENOMEM;
	while (taken < entries) {
		size_t offset = offset_in_page(next->offset);

		for (pieces = 0, octets = 0; taken < entries; taken++, next = sg_next(next)) {
			if (pieces && (!joins(last, next) || octets + next->length > most))
				break;
			piece[pieces].memory = sg_virt(next);
			piece[pieces++].octets = next->length;
			octets += next->length;
			last = next;
		}
		address = bounce_begin(piece, pieces, offset, direction, runs ? 0 : entries);
		if (address == DMA_MAPPING_ERROR) {
			end_list(list, runs, direction, attrs | DMA_ATTR_SKIP_CPU_SYNC);
			return -EIO;
		}
		sg_dma_address(run) = address;
		sg_dma_len(run) = octets;
		run = sg_next(run);
		runs++;
	}
	return runs;
}

static void bounce_unmap_sg(struct device *dev, struct scatterlist *list, int entries,
			    enum dma_data_direction direction, unsigned long attrs)
{
	int i, runs = 0, right = bounce_entries(sg_dma_address(list));
	struct scatterlist *each;
	size_t octets = 0;

	if (entries != right)
		fault("a list was mapped with %d entries, and unmapped with %d", right, entries);
	/* There are as many runs as it takes for all octets. */
	for_each_sg(list, each, right, i)
		octets += each->length;
	for (each = list; octets && runs < right; runs++, each = sg_next(each))
		octets -= min(octets, sg_dma_len(each));
	end_list(list, runs, direction, attrs);
}

static void bounce_sync_for_cpu(struct device *dev, dma_addr_t address, size_t size,
				enum dma_data_direction direction)
{
	bounce_take_back(address, size, direction);
}

static void bounce_sync_for_device(struct device *dev, dma_addr_t address, size_t size,
				   enum dma_data_direction direction)
{
	bounce_give(address, size, direction);
}

static const struct dma_map_ops bounce_ops = {
	.map_phys = bounce_map_phys,
	.unmap_phys = bounce_unmap_phys,
	.map_sg = bounce_map_sg,
	.unmap_sg = bounce_unmap_sg,
	.sync_single_for_cpu = bounce_sync_for_cpu,
	.sync_single_for_device = bounce_sync_for_device,
};

/* ib_register_device(device, name, dma_device) */
static int registering(struct kprobe *probe, struct pt_regs *regs)
{
	ulong *dma_device;

#if defined(CONFIG_X86_64)
	dma_device = &regs->dx;
#elif defined(CONFIG_ARM64)
	dma_device = (ulong *)&regs->regs[2];
#else
#error "where is the third argument of a function?"
#endif
	if (!*dma_device && try_module_get(THIS_MODULE))
		*dma_device = (ulong)&device->dev;
	return 0;
}

/* ib_dealloc_device(device) */
static int freeing(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_device *ibdev = (void *)regs_get_kernel_argument(regs, 0);

	if (ibdev->dma_device == &device->dev)
		module_put(THIS_MODULE);
	return 0;
}

static struct kprobe on_register = {
	.symbol_name = "ib_register_device",
	.pre_handler = registering,
};

static struct kprobe on_free = {
	.symbol_name = "ib_dealloc_device",
	.pre_handler = freeing,
};

static struct kprobe *probes[] = { &on_free, &on_register };

static int __init bounce_init(void)
{
	int error;

	device = platform_device_register_simple("bounce", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device))
		return PTR_ERR(device);
	set_dma_ops(&device->dev, &bounce_ops);
	error = dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));
	if (!error)
		error = register_kprobes(probes, ARRAY_SIZE(probes));
	if (error)
		platform_device_unregister(device);
	return error;
}
module_init(bounce_init);

static void __exit bounce_exit(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
	bounce_forget();
	platform_device_unregister(device);
}
module_exit(bounce_exit);

MODULE_DESCRIPTION("Has RDMA devices reach memory through copies");
MODULE_LICENSE("GPL");
