// SPDX-License-Identifier: GPL-2.0
/* The copies: what is mapped, what has been, and what is wrong with either. */
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

/* What is in a copy where nothing is mapped, and after a mapping has ended. */
#define BESIDE	0x5a
#define ENDED	0x6b

/* The longest line of a cache. */
#define LINE	128

/* Octets of copies that are kept after their end, to see who writes to them. */
#define KEPT	(4UL << 20)

static uint fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "the mapping with this number fails, and so many later again");

static bool fail_lists;
module_param(fail_lists, bool, 0644);
MODULE_PARM_DESC(fail_lists, "no others than those of lists fail");

static ulong mapped;
module_param(mapped, ulong, 0444);
MODULE_PARM_DESC(mapped, "mappings there are");

static ulong lists;
module_param(lists, ulong, 0444);
MODULE_PARM_DESC(lists, "lists there are among them");

static ulong total;
module_param(total, ulong, 0444);
MODULE_PARM_DESC(total, "mappings there have been");

static ulong joined;
module_param(joined, ulong, 0444);
MODULE_PARM_DESC(joined, "of these, runs of several entries of a list");

static ulong failed;
module_param(failed, ulong, 0444);
MODULE_PARM_DESC(failed, "mappings that have failed");

static ulong faults;
module_param(faults, ulong, 0444);
MODULE_PARM_DESC(faults, "what went wrong");

/* What shares a line with memory, in front of it or behind it. */
struct margin {
	u8 *memory;
	size_t octets;
	u8 was[LINE];
};

/* What the device has of one piece of memory, or of several that it takes for one. */
struct mapping {
	struct hlist_node by_address;
	struct list_head ended;
	/* The copy: whole pages, and where in them the memory begins. */
	void *pages;
	size_t size;
	size_t offset;
	size_t octets;
	enum dma_data_direction direction;
	/* Of the list that it begins; none for a later run of one, or NO_LIST. */
	int entries;
	bool with_cpu;
	/* Of what the device may only read. */
	u32 sum;
	/* Of what it may write. */
	struct margin before, behind;
	/* What happened before and after. */
	ulong began_at, ended_at;
	/* Only this list has it any more. */
	bool is_over;
	int pieces;
	struct piece piece[] __counted_by(pieces);
};

/* Guards all below and the counters. */
static DEFINE_SPINLOCK(lock);
static DEFINE_HASHTABLE(mappings, 12);
static LIST_HEAD(ended);
static size_t ended_octets;
static ulong moment, tries;

void bounce_fault(void)
{
	guard(spinlock_irqsave)(&lock);
	faults++;
}

static void *copy_of(struct mapping *it)
{
	return it->pages + it->offset;
}

static bool is_filled(const void *memory, u8 with, size_t octets)
{
	return !memchr_inv(memory, with, octets);
}

static bool reads(enum dma_data_direction direction)
{
	return direction != DMA_FROM_DEVICE;
}

static bool writes(enum dma_data_direction direction)
{
	return direction != DMA_TO_DEVICE;
}

/* Between memory and the first octets of the copy. */
static void move(struct mapping *it, size_t octets, bool to_copy)
{
	void *copy = copy_of(it);
	struct piece *piece;
	size_t now;

	for (piece = it->piece; octets; piece++, copy += now, octets -= now) {
		now = min(octets, piece->octets);
		if (to_copy)
			memcpy(copy, piece->memory, now);
		else
			memcpy(piece->memory, copy, now);
	}
}

static u32 sum_of(struct mapping *it)
{
	return jhash(copy_of(it), it->octets, 0);
}

/*
 * Small pieces of memory have neighbours that nobody can know of, and so has what programs read
 * to: two READs may have a line in common.
 */
static void look_beside(struct margin *margin, u8 *memory, size_t octets)
{
	struct folio *folio = virt_to_folio(memory);

	if (!octets || folio_test_slab(folio) || folio_mapped(folio))
		return;
	margin->memory = memory;
	margin->octets = octets;
	memcpy(margin->was, memory, octets);
}

static void look_at_margins(struct mapping *it)
{
	struct piece *last = &it->piece[it->pieces - 1];
	u8 *end = last->memory + last->octets;
	size_t octets;

	if (!writes(it->direction))
		return;
	octets = (uintptr_t)it->piece->memory % LINE;
	look_beside(&it->before, it->piece->memory - octets, octets);
	octets = -(uintptr_t)end % LINE;
	look_beside(&it->behind, end, octets);
}

static bool covers(const struct mapping *it, const u8 *octet)
{
	int i;

	for (i = 0; i < it->pieces; i++)
		if (octet >= (u8 *)it->piece[i].memory &&
		    octet < (u8 *)it->piece[i].memory + it->piece[i].octets)
			return true;
	return false;
}

/* Whether the octet was mapped as well at some time since then. The lock is held. */
static bool was_mapped(const u8 *octet, ulong since)
{
	struct mapping *it;
	int bucket;

	hash_for_each(mappings, bucket, it, by_address)
		if (covers(it, octet))
			return true;
	list_for_each_entry_reverse(it, &ended, ended) {
		if (it->ended_at < since)
			return false;
		if (covers(it, octet))
			return true;
	}
	return false;
}

static void check_margin(struct mapping *it, struct margin *margin)
{
	size_t i, written = 0;

	if (!memcmp(margin->memory, margin->was, margin->octets))
		return;
	scoped_guard(spinlock_irqsave, &lock) {
		for (i = 0; i < margin->octets; i++)
			written += margin->memory[i] != margin->was[i] &&
				   !was_mapped(&margin->memory[i], it->began_at);
	}
	if (written)
		fault("%zu octets were written to beside %zu that are mapped", written,
		      it->octets);
}

static void free_mapping(struct mapping *it)
{
	free_pages_exact(it->pages, it->size);
	kfree(it);
}

static bool is_to_fail(bool of_list)
{
	guard(spinlock_irqsave)(&lock);
	total++;
	if (!fail_every || (fail_lists && !of_list) || ++tries % fail_every)
		return false;
	failed++;
	return true;
}

static struct mapping *new_mapping(const struct piece *piece, int pieces, size_t offset,
				   enum dma_data_direction direction, int entries)
{
	struct mapping *it;
	int i;

	if (is_to_fail(entries != NO_LIST))
		return NULL;
	it = kzalloc(struct_size(it, piece, pieces), GFP_ATOMIC | __GFP_NOWARN);
	if (!it)
		return NULL;
	it->pieces = pieces;
	for (i = 0; i < pieces; i++) {
		it->piece[i] = piece[i];
		it->octets += piece[i].octets;
	}
	it->offset = offset;
	it->direction = direction;
	it->entries = entries;
	it->size = PAGE_ALIGN(offset + it->octets);
	it->pages = alloc_pages_exact(it->size, GFP_ATOMIC | __GFP_NOWARN);
	if (!it->pages) {
		kfree(it);
		return NULL;
	}
	memset(it->pages, BESIDE, it->size);
	/* What the device does not write stays as it was. */
	move(it, it->octets, true);
	it->sum = reads(direction) && !writes(direction) ? sum_of(it) : 0;
	look_at_margins(it);
	return it;
}

dma_addr_t bounce_begin(const struct piece *piece, int pieces, size_t offset,
			enum dma_data_direction direction, int entries)
{
	struct mapping *it = new_mapping(piece, pieces, offset, direction, entries);
	dma_addr_t address;

	if (!it)
		return DMA_MAPPING_ERROR;
	address = (uintptr_t)copy_of(it);
	guard(spinlock_irqsave)(&lock);
	mapped++;
	lists += it->entries > 0;
	joined += it->pieces > 1;
	it->began_at = ++moment;
	hash_add(mappings, &it->by_address, address);
	return address;
}

/* The lock is held. */
static struct mapping *find(dma_addr_t address)
{
	struct mapping *it;

	hash_for_each_possible(mappings, it, by_address, address)
		if ((uintptr_t)copy_of(it) == address)
			return it;
	return NULL;
}

int bounce_entries(dma_addr_t address)
{
	struct mapping *it;

	guard(spinlock_irqsave)(&lock);
	it = find(address);
	return it && it->entries > 0 ? it->entries : 0;
}

static struct mapping *find_and_end(dma_addr_t address)
{
	struct mapping *it;

	guard(spinlock_irqsave)(&lock);
	it = find(address);
	if (it) {
		hash_del(&it->by_address);
		mapped--;
		lists -= it->entries > 0;
		it->ended_at = ++moment;
		list_add_tail(&it->ended, &ended);
	}
	return it;
}

/* The oldest of those that have ended, if they are too many. */
static struct mapping *next_to_free(size_t kept)
{
	struct mapping *it;

	guard(spinlock_irqsave)(&lock);
	it = list_first_entry_or_null(&ended, struct mapping, ended);
	if (!it || !it->is_over || ended_octets <= kept)
		return NULL;
	list_del(&it->ended);
	ended_octets -= it->size;
	return it;
}

static void free_ended(size_t kept)
{
	struct mapping *it;

	while ((it = next_to_free(kept))) {
		if (!is_filled(it->pages, ENDED, it->size))
			fault("%zu octets were written to after they were unmapped", it->octets);
		free_mapping(it);
	}
}

void bounce_forget(void)
{
	free_ended(0);
}

static void check_device(struct mapping *it)
{
	size_t behind = it->offset + it->octets;

	if (!is_filled(it->pages, BESIDE, it->offset) ||
	    !is_filled(it->pages + behind, BESIDE, it->size - behind))
		fault("the device has written beside %zu octets that are mapped", it->octets);
	if (!writes(it->direction) && it->sum != sum_of(it))
		fault("the device has written to %zu octets that it may only read", it->octets);
}

void bounce_end(dma_addr_t address, size_t octets, enum dma_data_direction direction,
		unsigned long attrs)
{
	struct mapping *it = find_and_end(address);

	if (!it) {
		fault("nothing is mapped where %zu octets are to be unmapped", octets);
		return;
	}
	if (octets != it->octets || direction != it->direction)
		fault("mapped %zu octets in direction %d, unmapped %zu in %d", it->octets,
		      it->direction, octets, direction);
	check_device(it);
	check_margin(it, &it->before);
	check_margin(it, &it->behind);
	if (writes(it->direction) && !(attrs & DMA_ATTR_SKIP_CPU_SYNC))
		move(it, it->octets, false);
	memset(it->pages, ENDED, it->size);
	scoped_guard(spinlock_irqsave, &lock) {
		it->is_over = true;
		ended_octets += it->size;
	}
	free_ended(KEPT);
}

void bounce_take_back(dma_addr_t address, size_t octets, enum dma_data_direction direction)
{
	struct mapping *it;
	bool twice;

	scoped_guard(spinlock_irqsave, &lock) {
		it = find(address);
		twice = it && it->with_cpu;
		if (it)
			it->with_cpu = true;
	}
	if (!it || octets > it->octets || direction != it->direction) {
		fault("%zu octets in direction %d are taken back, and are not mapped so", octets,
		      direction);
		return;
	}
	if (twice)
		fault("%zu octets are taken back for the second time", octets);
	if (writes(direction))
		move(it, octets, false);
}

void bounce_give(dma_addr_t address, size_t octets, enum dma_data_direction direction)
{
	struct mapping *it;

	scoped_guard(spinlock_irqsave, &lock) {
		it = find(address);
		if (it)
			it->with_cpu = false;
	}
	if (!it || octets > it->octets || direction != it->direction) {
		fault("%zu octets in direction %d are given, and are not mapped so", octets,
		      direction);
		return;
	}
	if (!reads(direction))
		return;
	check_device(it);
	move(it, octets, true);
	it->sum = writes(direction) ? 0 : sum_of(it);
}
