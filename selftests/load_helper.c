// SPDX-License-Identifier: GPL-2.0
/*
 * Writes and reads random blocks of a file and knows what each must hold:
 *
 *   load_helper buffered|direct FILE BLOCKS STOP
 *
 * goes on until a file named STOP exists, then checks every block once more,
 * past the page cache. Ends at the first error or difference.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"

#define BLOCK	65536

static unsigned char *buffer;
static uint64_t *seeds;		/* of each block's content; 0 if not written */
static uint64_t seed;
static int fd;

static void write_block(size_t n)
{
	off_t at = (off_t)n * BLOCK;
	ssize_t done;

	seeds[n] = ++seed;
	pattern_fill(buffer, BLOCK, at, seed);
	done = pwrite(fd, buffer, BLOCK, at);
	if (done < 0)
		err(1, "writing block %zu", n);
	if (done != BLOCK)
		errx(1, "writing block %zu: %zd octets", n, done);
}

static void check_block(size_t n)
{
	off_t at = (off_t)n * BLOCK;
	ssize_t done;
	size_t same;

	if (!seeds[n])
		return;
	memset(buffer, 0, BLOCK);
	done = pread(fd, buffer, BLOCK, at);
	if (done < 0)
		err(1, "reading block %zu", n);
	if (done != BLOCK)
		errx(1, "reading block %zu: %zd octets", n, done);
	same = pattern_match(buffer, BLOCK, at, seeds[n]);
	if (same != BLOCK)
		errx(1, "block %zu differs at octet %zu", n, same);
}

int main(int argc, char **argv)
{
	size_t blocks, writes = 0;
	int flags;

	if (argc != 5)
		errx(2, "see the source");
	blocks = atoll(argv[3]);
	flags = strcmp(argv[1], "direct") ? 0 : O_DIRECT;
	fd = open(argv[2], O_CREAT | O_RDWR | flags, 0644);
	if (fd < 0)
		err(1, "%s", argv[2]);
	seeds = calloc(blocks, sizeof(*seeds));
	buffer = aligned_alloc(4096, BLOCK);
	if (!seeds || !buffer)
		err(2, "memory");
	seed = (uint64_t)getpid() << 32;
	srandom(getpid());

	for (; access(argv[4], F_OK); writes++) {
		write_block(random() % blocks);
		check_block(random() % blocks);
		if (!flags && writes % 16 == 0 && fsync(fd))
			err(1, "fsync");
	}
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		err(1, "fsync");
	if (fcntl(fd, F_SETFL, O_DIRECT))
		err(1, "O_DIRECT");
	for (size_t n = 0; n < blocks; n++)
		check_block(n);
	if (close(fd))
		err(1, "close");
	printf("%zu blocks were written\n", writes);
	return 0;
}
