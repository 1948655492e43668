// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the first SIZE bytes of a hole with direct I/O, COUNT times, and checks for zeroes:
 *
 *   hole_helper FILE SIZE COUNT
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: hole_helper FILE SIZE COUNT");
	const size_t size = strtoul(argv[2], NULL, 10);
	const unsigned long count = strtoul(argv[3], NULL, 10);
	char *buffer = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	int fd = open(argv[1], O_RDONLY | O_DIRECT);

	if (!buffer || !size)
		errx(2, "no memory for %zu bytes", size);
	if (fd < 0)
		err(1, "%s", argv[1]);
	for (unsigned long turn = 0; turn < count; turn++) {
		memset(buffer, 0xa5, size);
		if (pread(fd, buffer, size, 0) != (ssize_t)size)
			err(1, "READ of %zu bytes", size);
		if (buffer[0] || memcmp(buffer, buffer + 1, size - 1))
			errx(1, "turn %lu, %zu bytes: not all zero", turn, size);
	}
	return 0;
}
