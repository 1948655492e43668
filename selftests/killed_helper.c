// SPDX-License-Identifier: GPL-2.0
/*
 * Direct I/O that is killed in the middle, and checks for corruption:
 *
 *   killed_helper write FILE GENERATION	write the file for ever; print a byte first
 *   killed_helper read FILE			read the file for ever; print a byte first
 *   killed_helper once FILE GENERATION		write the file once
 *   killed_helper check FILE GENERATION	check that each page is of this generation, or of
 *						any generation if that is 0
 *   killed_helper canary STOP			until STOP exists, allocate memory and check that
 *						it is not written to by a device
 *
 * Each page of the file starts with its generation, from which the rest of the page follows. A page
 * that the device read after the writer's memory was freed and reused does not match.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"

#define PAGE	4096
#define CHUNK	(1 << 20)
#define FILE_SIZE	(4 << 20)
#define CANARY_SIZE	(32 << 20)

static void fill(unsigned char *chunk, off_t at, uint64_t generation)
{
	for (size_t i = 0; i < CHUNK; i += PAGE) {
		memcpy(chunk + i, &generation, sizeof(generation));
		pattern_fill(chunk + i + 8, PAGE - 8, at + i + 8, generation);
	}
}

static void check(const unsigned char *chunk, off_t at, uint64_t wanted)
{
	for (size_t i = 0; i < CHUNK; i += PAGE) {
		uint64_t found;

		memcpy(&found, chunk + i, sizeof(found));
		if (pattern_match(chunk + i + 8, PAGE - 8, at + i + 8, found) !=
		    PAGE - 8)
			errx(1, "the page at %lld matches no generation",
			     (long long)at + (long long)i);
		if (wanted && found != wanted)
			errx(1, "the page at %lld has generation %llu, not %llu",
			     (long long)at + (long long)i,
			     (unsigned long long)found,
			     (unsigned long long)wanted);
	}
}

static int open_direct(const char *file, int flags)
{
	int fd = open(file, flags, 0644);

	/* O_DIRECT by fcntl(), which may fail: the server's tmpfs may not support it. */
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_DIRECT);
	if (fd < 0)
		err(1, "%s", file);
	return fd;
}

static void report_start(void)
{
	if (write(STDOUT_FILENO, ".", 1) != 1)
		err(2, "standard output");
}

static void write_file(const char *file, uint64_t generation, bool forever)
{
	int fd = open_direct(file, O_CREAT | O_WRONLY);
	unsigned char *all = aligned_alloc(PAGE, FILE_SIZE);

	if (!all)
		err(2, "memory");
	for (off_t at = 0; at < FILE_SIZE; at += CHUNK)
		fill(all + at, at, generation);
	if (forever)
		report_start();
	do {
		for (off_t at = 0; at < FILE_SIZE; at += CHUNK)
			if (pwrite(fd, all + at, CHUNK, at) != CHUNK)
				err(1, "pwrite");
	} while (forever);
	if (fsync(fd) || close(fd))
		err(1, "fsync");
}

static void read_file(const char *file, uint64_t generation, bool forever)
{
	int fd = open_direct(file, O_RDONLY);
	unsigned char *chunk = aligned_alloc(PAGE, CHUNK);

	if (!chunk)
		err(2, "memory");
	if (forever)
		report_start();
	do {
		for (off_t at = 0; at < FILE_SIZE; at += CHUNK) {
			if (pread(fd, chunk, CHUNK, at) != CHUNK)
				err(1, "pread");
			if (!forever)
				check(chunk, at, generation);
		}
	} while (forever);
}

static void canary(const char *stop)
{
	while (access(stop, F_OK)) {
		unsigned char *memory = mmap(NULL, CANARY_SIZE,
					     PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1,
					     0);

		if (memory == MAP_FAILED)
			err(2, "mmap");
		memset(memory, 0x5a, CANARY_SIZE);
		usleep(100000);
		for (size_t i = 0; i < CANARY_SIZE; i++)
			if (memory[i] != 0x5a)
				errx(1, "freed memory was written to");
		munmap(memory, CANARY_SIZE);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t generation = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;

	if (!strcmp(what, "write") || !strcmp(what, "once"))
		write_file(argv[2], generation, !strcmp(what, "write"));
	else if (!strcmp(what, "read") || !strcmp(what, "check"))
		read_file(argv[2], generation, !strcmp(what, "read"));
	else if (!strcmp(what, "canary"))
		canary(argv[2]);
	else
		errx(2, "see the source");
	return 0;
}
