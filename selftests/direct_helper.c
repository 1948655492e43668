// SPDX-License-Identifier: GPL-2.0
/*
 * Direct I/O, a WRITE and a READ of the same octets in turn, each compared:
 *
 *   direct_helper FILE COUNT LEAST MOST STEP
 *
 * makes COUNT transfers in all, an even number, from LEAST to MOST octets, larger by
 * STEP each time and then from the start again. Memory and file offset begin with a page.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"

#define UNTOUCHED	0xa5

int main(int argc, char **argv)
{
	if (argc != 6)
		errx(2, "usage: direct_helper FILE COUNT LEAST MOST STEP");
	const unsigned long count = strtoul(argv[2], NULL, 10);
	const size_t least = strtoul(argv[3], NULL, 10);
	const size_t most = strtoul(argv[4], NULL, 10);
	const size_t step = strtoul(argv[5], NULL, 10);
	const size_t memory = (most + 4095) / 4096 * 4096;
	unsigned char *buffer = aligned_alloc(4096, memory);
	size_t octets = least;
	int fd;

	if (count % 2)
		errx(2, "%lu transfers are no pairs", count);
	if (!buffer)
		err(2, "memory");
	fd = open(argv[1], O_RDWR | O_CREAT | O_DIRECT, 0644);
	if (fd < 0)
		err(1, "%s", argv[1]);
	for (unsigned long turn = 0; turn < count; turn += 2) {
		size_t right;

		pattern_fill(buffer, memory, 0, turn + 1);
		if (pwrite(fd, buffer, octets, 0) != (ssize_t)octets)
			err(1, "WRITE of %zu octets", octets);
		memset(buffer, UNTOUCHED, memory);
		if (pread(fd, buffer, octets, 0) != (ssize_t)octets)
			err(1, "READ of %zu octets", octets);
		right = pattern_match(buffer, octets, 0, turn + 1);
		if (right < octets)
			errx(1, "turn %lu, %zu octets: wrong data at %zu", turn, octets, right);
		for (size_t i = octets; i < memory; i++)
			if (buffer[i] != UNTOUCHED)
				errx(1, "turn %lu, %zu octets: written behind them at %zu",
				     turn, octets, i);
		octets = octets + step > most ? least : octets + step;
	}
	return 0;
}
