// SPDX-License-Identifier: GPL-2.0
/*
 * Writes and reads the start of a file with direct I/O and compares the data:
 *
 *   direct_helper FILE COUNT MIN MAX STEP [SKIP]
 *
 * COUNT is the even number of transfers: a WRITE and a READ of MIN bytes, then of STEP bytes more,
 * and after MAX bytes from MIN on again. The buffer starts SKIP (0) bytes behind a page boundary.
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
	if (argc != 6 && argc != 7)
		errx(2, "usage: direct_helper FILE COUNT MIN MAX STEP [SKIP]");
	const unsigned long count = strtoul(argv[2], NULL, 10);
	const size_t min = strtoul(argv[3], NULL, 10);
	const size_t max = strtoul(argv[4], NULL, 10);
	const size_t step = strtoul(argv[5], NULL, 10);
	const size_t skip = argc == 7 ? strtoul(argv[6], NULL, 10) : 0;
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t memory = (max + page - 1) / page * page;
	unsigned char *buffer = aligned_alloc(page, memory + (skip + page - 1) / page * page);
	size_t len = min;
	int fd;

	if (count % 2)
		errx(2, "%lu is not an even number", count);
	if (!buffer)
		err(2, "memory");
	buffer += skip;
	fd = open(argv[1], O_RDWR | O_CREAT | O_DIRECT, 0644);
	if (fd < 0)
		err(1, "%s", argv[1]);
	for (unsigned long turn = 0; turn < count; turn += 2) {
		ssize_t done;
		size_t right;

		pattern_fill(buffer, memory, 0, turn + 1);
		if (pwrite(fd, buffer, len, 0) != (ssize_t)len)
			err(1, "WRITE of %zu bytes", len);
		memset(buffer, UNTOUCHED, memory);
		done = pread(fd, buffer, len, 0);
		if (done < 0)
			err(1, "READ of %zu bytes", len);
		/* A READ of several RPCs ends before the first RPC that fails. */
		if (done != (ssize_t)len)
			errx(1, "READ of %zu bytes: only %zd bytes", len, done);
		right = pattern_match(buffer, len, 0, turn + 1);
		if (right < len)
			errx(1, "turn %lu, %zu bytes: wrong data at %zu", turn, len, right);
		for (size_t i = len; i < memory; i++)
			if (buffer[i] != UNTOUCHED)
				errx(1, "turn %lu, %zu bytes: written past the end at %zu",
				     turn, len, i);
		len = len + step > max ? min : len + step;
	}
	return 0;
}
