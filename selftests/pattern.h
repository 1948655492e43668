/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test data that depends on its place: each byte is a function of its file offset and a seed, so
 * that missing, stale and misplaced data differs from the right data.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

static inline unsigned char pattern_byte(uint64_t offset, uint64_t seed)
{
	uint64_t x = offset / 8 + seed * 0x9e3779b97f4a7c15ULL + 1;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return (x ^ (x >> 31)) >> (offset % 8 * 8);
}

static inline void pattern_fill(unsigned char *to, size_t length,
				uint64_t offset, uint64_t seed)
{
	for (size_t i = 0; i < length; i++)
		to[i] = pattern_byte(offset + i, seed);
}

/* Returns the number of leading bytes that match the pattern. */
static inline size_t pattern_match(const unsigned char *data, size_t length,
				   uint64_t offset, uint64_t seed)
{
	size_t i = 0;

	while (i < length && data[i] == pattern_byte(offset + i, seed))
		i++;
	return i;
}

#endif
