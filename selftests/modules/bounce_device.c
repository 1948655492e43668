// SPDX-License-Identifier: GPL-2.0
/*
 * DMA operations for software RDMA devices that behave like an IOMMU on a machine with non-coherent
 * DMA. A device gets the address of a bounce buffer, which is copied from and to memory at map,
 * sync and unmap only. Scatterlist entries of whole pages are merged into one segment. Each
 * violation is counted in faults and logged with a warning:
 *
 *  - an unmap without a map, or with other arguments;
 *  - a write by the device to a read-only mapping, next to a mapping, or after the unmap;
 *  - a write by the CPU to a cache line that is partly mapped for writing by the device;
 *  - a second sync for the CPU without a sync for the device in between;
 *  - a scatterlist that is mapped again without being initialised, so that it has marks of the DMA
 *    layer from an earlier mapping.
 *
 * Applies to devices that register while the module is loaded; they hold a reference to it. One
 * mapping in every fail_interval fails, and with fail_above all long ones do, as where swiotlb has
 * little contiguous room. With slots, each scatterlist entry is a segment, which starts at the
 * start of a page, as with swiotlb: a scatterlist without gaps gets bus addresses with gaps.
 *
 *	insmod bounce.ko [fail_interval=N] [fail_sg_only=1] [fail_above=N] [slots=1]
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

static bool slots;
module_param(slots, bool, 0644);
MODULE_PARM_DESC(slots, "map each scatterlist entry to the start of a page");

static dma_addr_t bounce_map_phys(struct device *dev, phys_addr_t phys, size_t size,
				  enum dma_data_direction direction, unsigned long attrs)
{
	struct part part = { .memory = phys_to_virt(phys), .len = size };

	return bounce_map(&part, 1, offset_in_page(phys), direction, NO_SG);
}

#ifndef HAVE_MAP_PHYS
/* Linux 6.18 has an operation for pages instead. */
static dma_addr_t bounce_map_page(struct device *dev, struct page *page, unsigned long offset,
				  size_t size, enum dma_data_direction direction,
				  unsigned long attrs)
{
	return bounce_map_phys(dev, page_to_phys(page) + offset, size, direction, attrs);
}
#endif

static void bounce_unmap_phys(struct device *dev, dma_addr_t address, size_t size,
			      enum dma_data_direction direction, unsigned long attrs)
{
	bounce_unmap(address, size, direction, attrs);
}

/* Returns whether an IOMMU could merge the two entries. */
static bool can_merge(struct scatterlist *first, struct scatterlist *second)
{
	return !slots && !offset_in_page(first->offset + first->length) &&
	       !offset_in_page(second->offset);
}

/* Returns whether a segment other than the last one ends within a page. */
static bool has_gaps(struct scatterlist *list, int segments)
{
	struct scatterlist *sg, *last = NULL;
	int i;

	for_each_sg(list, sg, segments, i) {
		if (last && offset_in_page(sg_dma_address(last) + sg_dma_len(last)))
			return true;
		last = sg;
	}
	return false;
}

static void unmap_segments(struct scatterlist *list, int segments,
			   enum dma_data_direction direction, unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(list, sg, segments, i)
		bounce_unmap(sg_dma_address(sg), sg_dma_len(sg), direction, attrs);
}

/*
 * As dma-iommu does for a device that is not coherent: marks a list with entries that share a cache
 * line with other memory. Nothing but a new initialisation of the first entry removes the mark, and
 * dma-iommu syncs and unmaps a list with the mark by addresses that this mapping need not have.
 */
static void mark_short(struct scatterlist *list, int nents, enum dma_data_direction direction)
{
	struct scatterlist *sg;
	int i;

	if (sg_dma_is_swiotlb(list))
		fault("a scatterlist of %d entries has the mark of an earlier mapping", nents);
	if (direction == DMA_TO_DEVICE)
		return;
	for_each_sg(list, sg, nents, i)
		if (sg->length < SMP_CACHE_BYTES)
			sg_dma_mark_swiotlb(list);
}

static int bounce_map_sg(struct device *dev, struct scatterlist *list, int nents,
			 enum dma_data_direction direction, unsigned long attrs)
{
	struct scatterlist *next = list, *segment = list, *last;
	size_t len, max_len = dma_get_max_seg_size(dev);
	struct part *part __free(kfree) = NULL;
	int done = 0, parts, segments = 0;
	dma_addr_t address;

	part = kcalloc(nents, sizeof(*part), GFP_ATOMIC | __GFP_NOWARN);
	if (!part)
		return -ENOMEM;
	mark_short(list, nents, direction);
	while (done < nents) {
		size_t offset = slots ? 0 : offset_in_page(next->offset);

		for (parts = 0, len = 0; done < nents; done++, next = sg_next(next)) {
			if (parts && (!can_merge(last, next) || len + next->length > max_len))
				break;
			part[parts].memory = sg_virt(next);
			part[parts++].len = next->length;
			len += next->length;
			last = next;
		}
		address = bounce_map(part, parts, offset, direction, segments ? 0 : nents);
		if (address == DMA_MAPPING_ERROR) {
			unmap_segments(list, segments, direction, attrs | DMA_ATTR_SKIP_CPU_SYNC);
			return -EIO;
		}
		sg_dma_address(segment) = address;
		sg_dma_len(segment) = len;
		segment = sg_next(segment);
		segments++;
	}
	if (has_gaps(list, segments))
		bounce_count_gaps();
	return segments;
}

static void bounce_unmap_sg(struct device *dev, struct scatterlist *list, int nents,
			    enum dma_data_direction direction, unsigned long attrs)
{
	int i, segments = 0, mapped_nents = bounce_nents(sg_dma_address(list));
	struct scatterlist *sg;
	size_t len = 0;

	if (nents != mapped_nents)
		fault("a scatterlist was mapped with %d entries, unmapped with %d", mapped_nents,
		      nents);
	/* The segments together are as long as the entries. */
	for_each_sg(list, sg, mapped_nents, i)
		len += sg->length;
	for (sg = list; len && segments < mapped_nents; segments++, sg = sg_next(sg))
		len -= min(len, sg_dma_len(sg));
	unmap_segments(list, segments, direction, attrs);
}

static void bounce_sync_for_cpu(struct device *dev, dma_addr_t address, size_t size,
				enum dma_data_direction direction)
{
	bounce_sync_cpu(address, size, direction);
}

static void bounce_sync_for_device(struct device *dev, dma_addr_t address, size_t size,
				   enum dma_data_direction direction)
{
	bounce_sync_device(address, size, direction);
}

static const struct dma_map_ops bounce_ops = {
#ifdef HAVE_MAP_PHYS
	.map_phys = bounce_map_phys,
	.unmap_phys = bounce_unmap_phys,
#else
	.map_page = bounce_map_page,
	.unmap_page = bounce_unmap_phys,
#endif
	.map_sg = bounce_map_sg,
	.unmap_sg = bounce_unmap_sg,
	.sync_single_for_cpu = bounce_sync_for_cpu,
	.sync_single_for_device = bounce_sync_for_device,
};

/* ib_register_device(device, name, dma_device) */
static int register_handler(struct kprobe *probe, struct pt_regs *regs)
{
	ulong *dma_device;

#if defined(CONFIG_X86_64)
	dma_device = &regs->dx;
#elif defined(CONFIG_ARM64)
	dma_device = (ulong *)&regs->regs[2];
#else
#error "register of the third argument unknown"
#endif
	if (!*dma_device && try_module_get(THIS_MODULE))
		*dma_device = (ulong)&device->dev;
	return 0;
}

/* ib_dealloc_device(device) */
static int dealloc_handler(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_device *ibdev = (void *)regs_get_kernel_argument(regs, 0);

	if (ibdev->dma_device == &device->dev)
		module_put(THIS_MODULE);
	return 0;
}

static struct kprobe register_probe = {
	.symbol_name = "ib_register_device",
	.pre_handler = register_handler,
};

static struct kprobe dealloc_probe = {
	.symbol_name = "ib_dealloc_device",
	.pre_handler = dealloc_handler,
};

static struct kprobe *probes[] = { &dealloc_probe, &register_probe };

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
	bounce_free_unmapped();
	platform_device_unregister(device);
}
module_exit(bounce_exit);

MODULE_DESCRIPTION("DMA operations with bounce buffers for software RDMA devices");
MODULE_LICENSE("GPL");
