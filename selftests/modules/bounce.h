/* SPDX-License-Identifier: GPL-2.0 */
/* The copies of bounce.ko, for the device that has them. */
#ifndef BOUNCE_H
#define BOUNCE_H

#include <linux/dma-direction.h>
#include <linux/types.h>

/* Memory that is to the device a part of one mapping. */
struct piece {
	void *memory;
	size_t octets;
};

/* In place of the entries of a list, for what is none. */
#define NO_LIST	-1

/*
 * Begins a mapping of those pieces; the first one begins so far behind the start of a page. It is
 * the first run of a list of so many entries, or a later one, of none. Returns the address of the
 * copy, or DMA_MAPPING_ERROR.
 */
dma_addr_t bounce_begin(const struct piece *piece, int pieces, size_t offset,
			enum dma_data_direction direction, int entries);

/* How many entries the list has that begins there. */
int bounce_entries(dma_addr_t address);

void bounce_end(dma_addr_t address, size_t octets, enum dma_data_direction direction,
		unsigned long attrs);

/* The first octets of a mapping are the processor's until they are the device's again. */
void bounce_take_back(dma_addr_t address, size_t octets, enum dma_data_direction direction);
void bounce_give(dma_addr_t address, size_t octets, enum dma_data_direction direction);

/* What has ended is looked at for the last time. */
void bounce_forget(void);

/* Something went wrong. */
void bounce_fault(void);

#define fault(format, ...) do {							\
	WARN(1, "bounce: " format "\n", ##__VA_ARGS__);				\
	bounce_fault();								\
} while (0)

#endif
