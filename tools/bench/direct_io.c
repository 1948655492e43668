// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats one operation of direct I/O and prints the median of its duration, in
 * nanoseconds of the monotonic clock. In a guest with --icount (tools/vm/run),
 * a nanosecond is an instruction.
 *
 *	direct_io FILE read|write BYTES WARM_UP MEASURED
 */

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		errx(2, "usage: direct_io FILE read|write BYTES WARM_UP MEASURED");
	const int writes = !strcmp(argv[2], "write");
	const size_t len = strtoul(argv[3], NULL, 10);
	const int warm = atoi(argv[4]), measured = atoi(argv[5]);
	long *took = calloc(measured, sizeof(*took));
	void *buffer;
	int fd;

	if (!took || posix_memalign(&buffer, 4096, len))
		errx(1, "no memory");
	memset(buffer, 0x5a, len);
	fd = open(argv[1], O_RDWR | O_DIRECT);
	if (fd < 0)
		err(1, "%s", argv[1]);
	for (int i = -warm; i < measured; i++) {
		const long start = now();
		const ssize_t done = writes ? pwrite(fd, buffer, len, 0) :
					      pread(fd, buffer, len, 0);
		const long end = now();

		if (done != (ssize_t)len)
			err(1, "%s of %zu bytes returned %zd", argv[2], len, done);
		if (i >= 0)
			took[i] = end - start;
	}
	qsort(took, measured, sizeof(*took), by_value);
	printf("%ld\n", took[measured / 2]);
	return 0;
}
