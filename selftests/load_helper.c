// SPDX-License-Identifier: GPL-2.0
/*
 * Writes random blocks of a file and verifies others:
 *
 *   load_helper buffered|direct FILE BLOCKS STOP
 *
 * Once the file STOP exists, verifies all blocks with direct I/O. Exits on the first error or
 * difference.
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
#define PAGE	4096

static unsigned char *buffer;
static size_t blocks;
static uint64_t *seeds;		/* of each block's data; 0 if not written yet */
static uint64_t first_seed, seed;
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
		errx(1, "writing block %zu: %zd bytes", n, done);
}

/* Reports a writeback error, which would explain missing data. */
static void report_writeback_error(void)
{
	if (fsync(fd))
		warn("fsync");
}

static void read_block(size_t n)
{
	ssize_t done;

	memset(buffer, 0, BLOCK);
	done = pread(fd, buffer, BLOCK, (off_t)n * BLOCK);
	if (done < 0)
		err(1, "reading block %zu", n);
	if (done == BLOCK)
		return;
	warnx("reading block %zu: %zd bytes", n, done);
	report_writeback_error();
	exit(1);
}

static size_t same(size_t n)
{
	return pattern_match(buffer, BLOCK, (off_t)n * BLOCK, seeds[n]);
}

/* Finds the write, and its block, that the data at this page of the buffer is from; 0 if none. */
static uint64_t origin(size_t page, size_t *block)
{
	*block = 0;
	for (uint64_t s = seed; s > first_seed; s--) {
		for (size_t b = 0; b < blocks; b++) {
			*block = b;
			if (pattern_match(buffer + page, PAGE, (off_t)b * BLOCK + page, s) == PAGE)
				return s;
		}
	}
	return 0;
}

/* Reports where the data in the buffer is from, for each run of pages with the same origin. */
static void report_origin(void)
{
	size_t block, last_block = 0;
	uint64_t from, last = 0;

	for (size_t page = 0; page < BLOCK; page += PAGE, last = from, last_block = block) {
		from = origin(page, &block);
		if (page && from == last && block == last_block)
			continue;
		if (from)
			warnx("from byte %zu on: data of write %ju, to block %zu", page,
			      (uintmax_t)(from - first_seed), block);
		else
			warnx("from byte %zu on: data that was never written, starting with %#04x",
			      page, buffer[page]);
	}
}

static void check_block(size_t n, const char *when)
{
	size_t before;

	if (!seeds[n])
		return;
	read_block(n);
	before = same(n);
	if (before == BLOCK)
		return;
	warnx("block %zu, %s, differs at byte %zu", n, when, before);
	warnx("last written by write %ju of %ju", (uintmax_t)(seeds[n] - first_seed),
	      (uintmax_t)(seed - first_seed));
	report_origin();
	report_writeback_error();
	read_block(n);
	errx(1, "a second READ %s", same(n) == BLOCK ? "is right" : "differs as well");
}

int main(int argc, char **argv)
{
	size_t writes = 0;
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
	first_seed = (uint64_t)getpid() << 32;
	seed = first_seed;
	srandom(getpid());

	for (; access(argv[4], F_OK); writes++) {
		write_block(random() % blocks);
		check_block(random() % blocks, "between writes");
		if (!flags && writes % 16 == 0 && fsync(fd))
			err(1, "fsync");
	}
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		err(1, "fsync");
	if (fcntl(fd, F_SETFL, O_DIRECT))
		err(1, "O_DIRECT");
	for (size_t n = 0; n < blocks; n++)
		check_block(n, "after the last write");
	if (close(fd))
		err(1, "close");
	printf("%zu blocks were written\n", writes);
	return 0;
}
