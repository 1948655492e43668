// SPDX-License-Identifier: GPL-2.0
/* Bounce buffers: those that are mapped, those that were, and the checks on both. */
#include <linux/cleanup.h>
#include <linux/dma-mapping.h>
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "bounce.h"

/* Fills the unmapped rest of a bounce buffer's pages, and all of it after the unmap. */
#define REDZONE	0x5a
#define POISON	0x6b

/* Largest cache line size. */
#define LINE	128

/* Bytes of unmapped bounce buffers that are kept, to detect late writes to them. */
#define QUARANTINE	(4UL << 20)

static uint fail_interval;
module_param(fail_interval, uint, 0644);
MODULE_PARM_DESC(fail_interval, "fail one mapping in N; 0 (default) fails none");

static bool fail_sg_only;
module_param(fail_sg_only, bool, 0644);
MODULE_PARM_DESC(fail_sg_only, "fail mappings of scatterlists only");

static uint fail_above;
module_param(fail_above, uint, 0644);
MODULE_PARM_DESC(fail_above,
		 "fail mappings of more bytes than N that are not scatterlists; 0 (default) fails none");

static ulong mapped;
module_param(mapped, ulong, 0444);
MODULE_PARM_DESC(mapped, "number of mappings that exist");

static ulong sg_lists;
module_param(sg_lists, ulong, 0444);
MODULE_PARM_DESC(sg_lists, "number of scatterlists that are mapped");

static ulong total;
module_param(total, ulong, 0444);
MODULE_PARM_DESC(total, "number of mappings requested so far");

static ulong merged;
module_param(merged, ulong, 0444);
MODULE_PARM_DESC(merged, "number of mappings that merged several scatterlist entries");

static ulong gaps;
module_param(gaps, ulong, 0444);
MODULE_PARM_DESC(gaps, "number of scatterlists that got bus addresses with gaps");

static ulong injected;
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "number of mappings that were failed");

static ulong faults;
module_param(faults, ulong, 0444);
MODULE_PARM_DESC(faults, "number of violations of the DMA API that were detected");

/* A saved copy of memory that shares a cache line with mapped memory, before or after it. */
struct margin {
	u8 *memory;
	size_t len;
	u8 saved[LINE];
};

/* A mapping of one part of memory, or of several that are contiguous to the device. */
struct mapping {
	struct hlist_node by_address;
	struct list_head unmapped;
	/* The bounce buffer: whole pages, and the offset of the mapped bytes in them. */
	void *pages;
	size_t size;
	size_t offset;
	size_t len;
	enum dma_data_direction direction;
	/* See bounce_map(). */
	int nents;
	bool cpu_owned;
	/* Hash of the bounce buffer, if the device may only read it. */
	u32 hash;
	/* Margins, if the device may write. */
	struct margin before, after;
	/* Values of clock, to order mappings. */
	ulong mapped_at, unmapped_at;
	/* All checks are done; only the list of unmapped buffers refers to it. */
	bool quarantined;
	int parts;
	struct part part[] __counted_by(parts);
};

/* Protects everything below and the counters. */
static DEFINE_SPINLOCK(lock);
static DEFINE_HASHTABLE(mappings, 12);
static LIST_HEAD(unmapped);
static size_t unmapped_bytes;
static ulong clock, tries;

void bounce_fault(void)
{
	guard(spinlock_irqsave)(&lock);
	faults++;
}

void bounce_count_gaps(void)
{
	guard(spinlock_irqsave)(&lock);
	gaps++;
}

static void *buffer_of(struct mapping *map)
{
	return map->pages + map->offset;
}

static bool is_filled(const void *memory, u8 with, size_t len)
{
	return !memchr_inv(memory, with, len);
}

static bool device_reads(enum dma_data_direction direction)
{
	return direction != DMA_FROM_DEVICE;
}

static bool device_writes(enum dma_data_direction direction)
{
	return direction != DMA_TO_DEVICE;
}

/* Copies between memory and the first len bytes of the bounce buffer. */
static void copy(struct mapping *map, size_t len, bool to_buffer)
{
	void *buffer = buffer_of(map);
	struct part *part;
	size_t n;

	for (part = map->part; len; part++, buffer += n, len -= n) {
		n = min(len, part->len);
		if (to_buffer)
			memcpy(buffer, part->memory, n);
		else
			memcpy(part->memory, buffer, n);
	}
}

static u32 hash_of(struct mapping *map)
{
	return jhash(buffer_of(map), map->len, 0);
}

/*
 * Saves a margin, except of slab objects, whose neighbours belong to other users, and of pages
 * mapped by user space: two READs may share a cache line there.
 */
static void save_margin(struct margin *margin, u8 *memory, size_t len)
{
	struct folio *folio = virt_to_folio(memory);

	if (!len || folio_test_slab(folio) || folio_mapped(folio))
		return;
	margin->memory = memory;
	margin->len = len;
	memcpy(margin->saved, memory, len);
}

static void save_margins(struct mapping *map)
{
	struct part *last = &map->part[map->parts - 1];
	u8 *end = last->memory + last->len;
	size_t len;

	if (!device_writes(map->direction))
		return;
	len = (uintptr_t)map->part->memory % LINE;
	save_margin(&map->before, map->part->memory - len, len);
	len = -(uintptr_t)end % LINE;
	save_margin(&map->after, end, len);
}

static bool covers(const struct mapping *map, const u8 *byte)
{
	int i;

	for (i = 0; i < map->parts; i++)
		if (byte >= (u8 *)map->part[i].memory &&
		    byte < (u8 *)map->part[i].memory + map->part[i].len)
			return true;
	return false;
}

/* Returns whether another mapping has covered the byte at some time since then. Lock held. */
static bool was_mapped(const u8 *byte, ulong since)
{
	struct mapping *map;
	int bucket;

	hash_for_each(mappings, bucket, map, by_address)
		if (covers(map, byte))
			return true;
	list_for_each_entry_reverse(map, &unmapped, unmapped) {
		if (map->unmapped_at < since)
			return false;
		if (covers(map, byte))
			return true;
	}
	return false;
}

static void check_margin(struct mapping *map, struct margin *margin)
{
	size_t i, written = 0;

	if (!memcmp(margin->memory, margin->saved, margin->len))
		return;
	scoped_guard(spinlock_irqsave, &lock) {
		for (i = 0; i < margin->len; i++)
			written += margin->memory[i] != margin->saved[i] &&
				   !was_mapped(&margin->memory[i], map->mapped_at);
	}
	if (written)
		fault("the CPU wrote %zu bytes next to %zu mapped bytes", written, map->len);
}

static void free_mapping(struct mapping *map)
{
	free_pages_exact(map->pages, map->size);
	kfree(map);
}

static bool should_fail(size_t len, bool is_sg)
{
	guard(spinlock_irqsave)(&lock);
	total++;
	if (fail_above && len > fail_above && !is_sg) {
		injected++;
		return true;
	}
	if (!fail_interval || (fail_sg_only && !is_sg) || ++tries % fail_interval)
		return false;
	injected++;
	return true;
}

static struct mapping *new_mapping(const struct part *part, int parts, size_t offset,
				   enum dma_data_direction direction, int nents)
{
	struct mapping *map;
	int i;

	if (should_fail(part->len, nents != NO_SG))
		return NULL;
	map = kzalloc(struct_size(map, part, parts), GFP_ATOMIC | __GFP_NOWARN);
	if (!map)
		return NULL;
	map->parts = parts;
	for (i = 0; i < parts; i++) {
		map->part[i] = part[i];
		map->len += part[i].len;
	}
	map->offset = offset;
	map->direction = direction;
	map->nents = nents;
	map->size = PAGE_ALIGN(offset + map->len);
	map->pages = alloc_pages_exact(map->size, GFP_ATOMIC | __GFP_NOWARN);
	if (!map->pages) {
		kfree(map);
		return NULL;
	}
	memset(map->pages, REDZONE, map->size);
	/* Also for DMA_FROM_DEVICE: bytes that the device does not write must not change. */
	copy(map, map->len, true);
	map->hash = device_reads(direction) && !device_writes(direction) ? hash_of(map) : 0;
	save_margins(map);
	return map;
}

dma_addr_t bounce_map(const struct part *part, int parts, size_t offset,
		      enum dma_data_direction direction, int nents)
{
	struct mapping *map = new_mapping(part, parts, offset, direction, nents);
	dma_addr_t address;

	if (!map)
		return DMA_MAPPING_ERROR;
	address = (uintptr_t)buffer_of(map);
	guard(spinlock_irqsave)(&lock);
	mapped++;
	sg_lists += map->nents > 0;
	merged += map->parts > 1;
	map->mapped_at = ++clock;
	hash_add(mappings, &map->by_address, address);
	return address;
}

/* Lock held. */
static struct mapping *find(dma_addr_t address)
{
	struct mapping *map;

	hash_for_each_possible(mappings, map, by_address, address)
		if ((uintptr_t)buffer_of(map) == address)
			return map;
	return NULL;
}

int bounce_nents(dma_addr_t address)
{
	struct mapping *map;

	guard(spinlock_irqsave)(&lock);
	map = find(address);
	return map && map->nents > 0 ? map->nents : 0;
}

static struct mapping *find_and_remove(dma_addr_t address)
{
	struct mapping *map;

	guard(spinlock_irqsave)(&lock);
	map = find(address);
	if (map) {
		hash_del(&map->by_address);
		mapped--;
		sg_lists -= map->nents > 0;
		map->unmapped_at = ++clock;
		list_add_tail(&map->unmapped, &unmapped);
	}
	return map;
}

/* Removes the oldest unmapped buffer, if there are more than limit bytes of them. */
static struct mapping *next_to_free(size_t limit)
{
	struct mapping *map;

	guard(spinlock_irqsave)(&lock);
	map = list_first_entry_or_null(&unmapped, struct mapping, unmapped);
	if (!map || !map->quarantined || unmapped_bytes <= limit)
		return NULL;
	list_del(&map->unmapped);
	unmapped_bytes -= map->size;
	return map;
}

static void free_unmapped(size_t limit)
{
	struct mapping *map;

	while ((map = next_to_free(limit))) {
		if (!is_filled(map->pages, POISON, map->size))
			fault("the device wrote to %zu bytes after the unmap", map->len);
		free_mapping(map);
	}
}

void bounce_free_unmapped(void)
{
	free_unmapped(0);
}

static void check_device(struct mapping *map)
{
	size_t end = map->offset + map->len;

	if (!is_filled(map->pages, REDZONE, map->offset) ||
	    !is_filled(map->pages + end, REDZONE, map->size - end))
		fault("the device wrote next to %zu mapped bytes", map->len);
	if (!device_writes(map->direction) && map->hash != hash_of(map))
		fault("the device wrote to %zu bytes that it may only read", map->len);
}

void bounce_unmap(dma_addr_t address, size_t len, enum dma_data_direction direction,
		  unsigned long attrs)
{
	struct mapping *map = find_and_remove(address);

	if (!map) {
		fault("unmap of %zu bytes that are not mapped", len);
		return;
	}
	if (len != map->len || direction != map->direction)
		fault("mapped %zu bytes in direction %d, unmapped %zu in %d", map->len,
		      map->direction, len, direction);
	check_device(map);
	check_margin(map, &map->before);
	check_margin(map, &map->after);
	if (device_writes(map->direction) && !(attrs & DMA_ATTR_SKIP_CPU_SYNC))
		copy(map, map->len, false);
	memset(map->pages, POISON, map->size);
	scoped_guard(spinlock_irqsave, &lock) {
		map->quarantined = true;
		unmapped_bytes += map->size;
	}
	free_unmapped(QUARANTINE);
}

void bounce_sync_cpu(dma_addr_t address, size_t len, enum dma_data_direction direction)
{
	struct mapping *map;
	bool twice;

	scoped_guard(spinlock_irqsave, &lock) {
		map = find(address);
		twice = map && map->cpu_owned;
		if (map)
			map->cpu_owned = true;
	}
	if (!map || len > map->len || direction != map->direction) {
		fault("sync for the CPU of %zu bytes in direction %d: no such mapping", len,
		      direction);
		return;
	}
	if (twice)
		fault("second sync of %zu bytes for the CPU", len);
	if (device_writes(direction))
		copy(map, len, false);
}

void bounce_sync_device(dma_addr_t address, size_t len, enum dma_data_direction direction)
{
	struct mapping *map;

	scoped_guard(spinlock_irqsave, &lock) {
		map = find(address);
		if (map)
			map->cpu_owned = false;
	}
	if (!map || len > map->len || direction != map->direction) {
		fault("sync for the device of %zu bytes in direction %d: no such mapping", len,
		      direction);
		return;
	}
	if (!device_reads(direction))
		return;
	check_device(map);
	copy(map, len, true);
	map->hash = device_writes(direction) ? 0 : hash_of(map);
}
