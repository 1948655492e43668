// SPDX-License-Identifier: GPL-2.0
/*
 * READs of zeroes, one after the other, each into memory that was none before:
 *
 *   hole_helper FILE OCTETS COUNT
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
		errx(2, "usage: hole_helper FILE OCTETS COUNT");
	const size_t octets = strtoul(argv[2], NULL, 10);
	const unsigned long count = strtoul(argv[3], NULL, 10);
	char *buffer = aligned_alloc(4096, (octets + 4095) / 4096 * 4096);
	int fd = open(argv[1], O_RDONLY | O_DIRECT);

	if (!buffer || !octets)
		errx(2, "no memory for %zu octets", octets);
	if (fd < 0)
		err(1, "%s", argv[1]);
	for (unsigned long turn = 0; turn < count; turn++) {
		memset(buffer, 0xa5, octets);
		if (pread(fd, buffer, octets, 0) != (ssize_t)octets)
			err(1, "READ of %zu octets", octets);
		if (buffer[0] || memcmp(buffer, buffer + 1, octets - 1))
			errx(1, "turn %lu, %zu octets: they are not all zero", turn, octets);
	}
	return 0;
}
