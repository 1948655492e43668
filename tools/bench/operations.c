// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats an operation of NFS, and tells count.c when:
 *
 *	operations ROW NAME BYTES WARM_UP MEASURED MOUNTED EXPORTED
 *
 * MOUNTED and EXPORTED are the same directory at the client and at the server.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "marks.h"

#define CHUNK	(1UL << 20)	/* of buffered I/O */
#define ENTRIES	300		/* of the directory that is read */

static const char *mounted, *exported;
static size_t bytes;
static void *buffer;

static const char *path(const char *in, const char *name)
{
	static char joined[4096];

	snprintf(joined, sizeof(joined), "%s/%s", in, name);
	return joined;
}

static int opened(const char *name, int flags)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(path(mounted, name), flags, 0644);
	if (fd < 0)
		err(1, "%s", name);
	return fd;
}

static void done(ssize_t len, size_t of)
{
	if (len != (ssize_t)of)
		err(1, "%zd of %zu bytes", len, of);
}

static void read_direct(void)
{
	done(pread(opened("file", O_RDWR | O_DIRECT), buffer, bytes, 0), bytes);
}

static void write_direct(void)
{
	done(pwrite(opened("file", O_RDWR | O_DIRECT), buffer, bytes, 0), bytes);
}

static void read_buffered(void)
{
	const int fd = opened("large", O_RDWR);

	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		errx(1, "posix_fadvise");
	for (size_t at = 0; at < bytes; at += CHUNK)
		done(pread(fd, buffer, CHUNK, at), CHUNK);
}

static void write_buffered(void)
{
	const int fd = opened("large", O_RDWR);

	for (size_t at = 0; at < bytes; at += CHUNK)
		done(pwrite(fd, buffer, CHUNK, at), CHUNK);
	if (fsync(fd))
		err(1, "fsync");
}

static void getattr(void)
{
	struct stat st;

	if (fstat(opened("file", O_RDONLY), &st))
		err(1, "fstat");
}

static void lookup_miss(void)
{
	struct stat st;

	if (!stat(path(mounted, "absent"), &st))
		errx(1, "absent exists");
}

static void create_remove(void)
{
	const int fd = open(path(mounted, "new"), O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (fd < 0 || close(fd) || unlink(path(mounted, "new")))
		err(1, "new");
}

/* The server changes the directory, or the client would have it in its cache. */
static void read_dir(void)
{
	static time_t time;
	const struct timespec times[2] = { { .tv_sec = ++time }, { .tv_sec = time } };
	int entries = 0;
	DIR *dir;

	if (utimensat(AT_FDCWD, path(exported, "dir"), times, 0))
		err(1, "dir");
	dir = opendir(path(mounted, "dir"));
	if (!dir)
		err(1, "dir");
	while (readdir(dir))
		entries++;
	closedir(dir);
	if (entries != ENTRIES + 2)
		errx(1, "%d entries of %d", entries, ENTRIES);
}

static const struct {
	const char *name;
	void (*once)(void);
} operations[] = {
	{ "READ", read_direct },
	{ "WRITE", write_direct },
	{ "READ-buffered", read_buffered },
	{ "WRITE-buffered", write_buffered },
	{ "GETATTR", getattr },
	{ "LOOKUP-miss", lookup_miss },
	{ "CREATE-REMOVE", create_remove },
	{ "READDIR", read_dir },
};

static void call(unsigned long mark)
{
	((void (*)(void))mark)();
}

/* Fills the page of marks with returns. */
static void map_marks(void)
{
	void *page = mmap((void *)MARKS, MARKS_LEN, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED)
		err(1, "mmap");
	memset(page, 0xc3, MARKS_LEN);
}

int main(int argc, char **argv)
{
	if (argc != 8)
		errx(2, "usage: operations ROW NAME BYTES WARM_UP MEASURED MOUNTED EXPORTED");
	const int row = atoi(argv[1]), warm = atoi(argv[4]), measured = atoi(argv[5]);
	void (*once)(void) = NULL;

	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (!strcmp(argv[2], operations[i].name))
			once = operations[i].once;
	bytes = strtoul(argv[3], NULL, 10);
	mounted = argv[6];
	exported = argv[7];
	if (!once || row < 0 || MARK_END(row) >= MARKS + MARKS_LEN)
		errx(2, "no operation %s, or row %d", argv[2], row);
	if (posix_memalign(&buffer, 4096, CHUNK))
		errx(1, "no memory");
	memset(buffer, 0x5a, CHUNK);
	map_marks();
	for (int i = 0; i < warm; i++)
		once();
	call(MARK_BEGIN(row));
	for (int i = 0; i < measured; i++)
		once();
	call(MARK_END(row));
	return 0;
}
