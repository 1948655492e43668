// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a range of a file by one kind of I/O, reads it back by another, and checks the range and
 * the data before and after it:
 *
 *   io_sizes_helper DIR SERVER_DIR WRITER READER LAYOUT OFFSET SIZE...
 *
 * WRITER and READER are buffered, direct or mmap. LAYOUT is "over" (the range overwrites part of a
 * longer file) or "fresh" (the file contains nothing else). SERVER_DIR is the server's path of DIR,
 * or "-".
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pattern.h"

#define BEFORE		1	/* seed of the data that is overwritten */
#define GUARD		5000	/* bytes of that data behind the range */

enum path { BUFFERED, DIRECT, MMAP };

static const char *file, *server_file;

static enum path path_of(const char *name)
{
	if (!strcmp(name, "buffered"))
		return BUFFERED;
	if (!strcmp(name, "direct"))
		return DIRECT;
	if (!strcmp(name, "mmap"))
		return MMAP;
	errx(2, "no such path: %s", name);
}

/*
 * Returns memory for a transfer, at a different offset in its page each time: direct I/O passes
 * that memory to the device.
 */
static unsigned char *transfer_buffer(size_t length)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t starts[] = { 0, 1, 4, 511, 2048, page - 4, page - 1 };
	static unsigned char *memory;
	static size_t size, turn;

	if (size < length + page) {
		free(memory);
		size = length + page;
		memory = aligned_alloc(page, (size + page - 1) / page * page);
		if (!memory)
			err(2, "memory");
	}
	return memory + starts[turn++ % (sizeof(starts) / sizeof(*starts))];
}

static int open_file(enum path path, int flags)
{
	int fd = open(file, flags | (path == DIRECT ? O_DIRECT : 0), 0644);

	if (fd < 0)
		err(1, "open %s", file);
	return fd;
}

static void write_range(enum path path, int flags, size_t length, off_t offset,
			uint64_t seed)
{
	int fd = open_file(path, O_RDWR | flags);
	unsigned char *from;

	if (path == MMAP && length) {
		size_t skip = offset % sysconf(_SC_PAGESIZE);
		struct stat st;

		if (fstat(fd, &st))
			err(1, "fstat");
		if (st.st_size < offset + (off_t)length &&
		    ftruncate(fd, offset + length))
			err(1, "ftruncate");
		from = mmap(NULL, skip + length, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, offset - skip);
		if (from == MAP_FAILED)
			err(1, "mmap");
		pattern_fill(from + skip, length, offset, seed);
		if (msync(from, skip + length, MS_SYNC) ||
		    munmap(from, skip + length))
			err(1, "msync");
	} else {
		from = transfer_buffer(length);
		pattern_fill(from, length, offset, seed);
		if (pwrite(fd, from, length, offset) != (ssize_t)length)
			err(1, "pwrite %zu at %lld", length, (long long)offset);
	}
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		err(1, "fsync");
	if (close(fd))
		err(1, "close");
}

/* Reads up to length bytes. The data is valid until the next call. */
static size_t read_range(enum path path, int fd, size_t length, off_t offset,
			 unsigned char **data)
{
	unsigned char *to = transfer_buffer(length);
	struct stat st;
	size_t got = 0;

	*data = to;
	if (path == MMAP) {
		size_t skip = offset % sysconf(_SC_PAGESIZE);
		unsigned char *from;

		if (fstat(fd, &st))
			err(1, "fstat");
		if (!length || offset >= st.st_size)
			return 0;
		got = st.st_size - offset;
		if (got > length)
			got = length;
		from = mmap(NULL, skip + got, PROT_READ, MAP_SHARED, fd,
			    offset - skip);
		if (from == MAP_FAILED)
			err(1, "mmap");
		memcpy(to, from + skip, got);
		munmap(from, skip + got);
		return got;
	}
	memset(to, 0xa5, length);
	while (got < length) {
		ssize_t n = pread(fd, to + got, length - got, offset + got);

		if (n < 0)
			err(1, "pread %zu at %lld", length, (long long)offset);
		if (n == 0)
			break;
		got += n;
	}
	return got;
}

static bool range_is(enum path path, int fd, size_t length, off_t offset,
		     uint64_t seed, const char *what)
{
	unsigned char *data;
	size_t got, same;

	if (!length)
		return true;
	got = read_range(path, fd, length, offset, &data);
	if (got != length) {
		printf("%s: %zu of %zu bytes at %lld\n", what, got, length,
		       (long long)offset);
		return false;
	}
	same = pattern_match(data, length, offset, seed);
	if (same == length)
		return true;
	printf("%s: byte %zu of %zu at %lld is %#x instead of %#x\n", what,
	       same, length, (long long)offset, data[same],
	       pattern_byte(offset + same, seed));
	return false;
}

static bool range_is_hole(enum path path, int fd, size_t length)
{
	unsigned char *data;
	size_t got = read_range(path, fd, length, 0, &data);

	for (size_t i = 0; i < length; i++) {
		if (i < got && !data[i])
			continue;
		printf("byte %zu of a hole of %zu is not zero\n", i, length);
		return false;
	}
	return true;
}

static bool content_is_right(enum path path, const char *name, bool over,
			     size_t size, off_t offset, uint64_t seed)
{
	size_t total = size || over ? offset + size + (over ? GUARD : 0) : 0;
	unsigned char *data;
	bool right;
	int fd;

	fd = open(name, O_RDONLY | (path == DIRECT ? O_DIRECT : 0));
	if (fd < 0)
		err(1, "open %s", name);
	right = range_is(path, fd, size, offset, seed, "range");
	if (over) {
		right &= range_is(path, fd, offset, 0, BEFORE, "before");
		right &= range_is(path, fd, GUARD, offset + size, BEFORE,
				  "after");
	} else if (size) {
		right &= range_is_hole(path, fd, offset);
	}
	if (read_range(path, fd, 64, total, &data)) {
		printf("data after the end of the file\n");
		right = false;
	}
	close(fd);
	return right;
}

int main(int argc, char **argv)
{
	enum path writer, reader;
	bool over, right = true;
	char name[2][4096];
	off_t offset;

	if (argc < 8)
		errx(2, "see the source");
	snprintf(name[0], sizeof(name[0]), "%s/sizes", argv[1]);
	snprintf(name[1], sizeof(name[1]), "%s/sizes", argv[2]);
	file = name[0];
	server_file = strcmp(argv[2], "-") ? name[1] : NULL;
	writer = path_of(argv[3]);
	reader = path_of(argv[4]);
	over = !strcmp(argv[5], "over");
	offset = atoll(argv[6]);

	for (int i = 7; i < argc; i++) {
		size_t size = atoll(argv[i]);
		uint64_t seed = 100 + i;
		bool good;

		if (over)
			write_range(BUFFERED, O_CREAT | O_TRUNC,
				    offset + size + GUARD, 0, BEFORE);
		write_range(writer, over ? 0 : O_CREAT | O_TRUNC, size, offset,
			    seed);
		good = content_is_right(reader, file, over, size, offset, seed);
		if (server_file)
			good &= content_is_right(BUFFERED, server_file, over,
						 size, offset, seed);
		if (!good)
			printf("size %zu failed\n", size);
		right &= good;
		if (unlink(file))
			err(1, "unlink");
	}
	return !right;
}
