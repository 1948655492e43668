/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Content that knows where it belongs: the octet at a file offset follows from
 * the offset and a seed, so that data that is missing, stale, or in the wrong
 * place is told apart from the right data.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

static inline unsigned char pattern_octet(uint64_t offset, uint64_t seed)
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
		to[i] = pattern_octet(offset + i, seed);
}

/* The number of leading octets that are as they should be. */
static inline size_t pattern_match(const unsigned char *data, size_t length,
				   uint64_t offset, uint64_t seed)
{
	size_t i = 0;

	while (i < length && data[i] == pattern_octet(offset + i, seed))
		i++;
	return i;
}

#endif
