/* SPDX-License-Identifier: GPL-2.0 */
/* The bounce buffers of bounce.ko, for its DMA operations. */
#ifndef BOUNCE_H
#define BOUNCE_H

#include <linux/dma-direction.h>
#include <linux/types.h>

/* Memory that is one part of a mapping. */
struct part {
	void *memory;
	size_t len;
};

/* nents of a mapping that is not part of a scatterlist. */
#define NO_SG	-1

/*
 * Maps the parts; the bounce buffer starts at that offset in a page. nents is the number of
 * scatterlist entries for the first segment of a scatterlist, 0 for a later segment, or NO_SG.
 * Returns the DMA address, which is that of the bounce buffer, or DMA_MAPPING_ERROR.
 */
dma_addr_t bounce_map(const struct part *part, int parts, size_t offset,
		      enum dma_data_direction direction, int nents);

/* Returns the number of entries of the scatterlist whose first segment is mapped there, or 0. */
int bounce_nents(dma_addr_t address);

void bounce_unmap(dma_addr_t address, size_t len, enum dma_data_direction direction,
		  unsigned long attrs);

/* Transfer ownership of the first len bytes of a mapping. */
void bounce_sync_cpu(dma_addr_t address, size_t len, enum dma_data_direction direction);
void bounce_sync_device(dma_addr_t address, size_t len, enum dma_data_direction direction);

/* Checks all unmapped bounce buffers for late writes and frees them. */
void bounce_free_unmapped(void);

/* Counts a fault. */
void bounce_fault(void);

/* Counts a scatterlist that got bus addresses with gaps. */
void bounce_count_gaps(void);

#define fault(format, ...) do {							\
	WARN(1, "bounce: " format "\n", ##__VA_ARGS__);				\
	bounce_fault();								\
} while (0)

#endif
