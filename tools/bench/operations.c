// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats an operation of NFS, and tells count.c when:
 *
 *	operations ROW NAME BYTES WARM_UP MEASURED MOUNTED EXPORTED SERVER
 *
 * MOUNTED and EXPORTED are the same directory at the client and at the server. SERVER is the
 * server's address.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "marks.h"

#define CHUNK	(1UL << 20)	/* of buffered I/O */
#define ENTRIES	300		/* of the directory that is read */
#define MOST	64		/* READs at once */
#define HOUR	3600

static const char *mounted, *exported, *server;
static size_t bytes, at_once = 1;
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

/* All READs are under way before the program waits for the first. */
static void read_at_once(void)
{
	static aio_context_t context;
	struct iocb requests[MOST], *submitted[MOST];
	struct io_event events[MOST];
	const int fd = opened("file", O_RDWR | O_DIRECT);

	if (!context && syscall(SYS_io_setup, MOST, &context))
		err(1, "io_setup");
	for (size_t i = 0; i < at_once; i++) {
		requests[i] = (struct iocb) {
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_fildes = fd,
			.aio_buf = (size_t)buffer + i * bytes,
			.aio_nbytes = bytes,
			.aio_offset = i * bytes,
		};
		submitted[i] = &requests[i];
	}
	if (syscall(SYS_io_submit, context, at_once, submitted) != (long)at_once)
		err(1, "io_submit");
	if (syscall(SYS_io_getevents, context, at_once, at_once, events, NULL) != (long)at_once)
		err(1, "io_getevents");
	for (size_t i = 0; i < at_once; i++)
		done(events[i].res, bytes);
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

/* The server changes the attribute, or the client would have it in its cache. */
static void get_xattr(void)
{
	static char name[] = "user.bench";
	static char value[CHUNK];

	++*(unsigned int *)value;
	if (setxattr(path(exported, "file"), name, value, bytes, 0))
		err(1, "setxattr");
	done(fgetxattr(opened("file", O_RDONLY), name, buffer, bytes), bytes);
	if (memcmp(buffer, value, bytes))
		errx(1, "another value of the attribute");
}

static void must_be_delegated(void)
{
	char line[256];
	int found = 0;
	FILE *locks = fopen("/proc/locks", "r");

	while (locks && fgets(line, sizeof(line), locks))
		found += !!strstr(line, "DELEG");
	if (!found)
		errx(1, "the server has granted no delegation");
	fclose(locks);
}

/*
 * A write at the server waits until the client has returned its delegation. Each file is recalled
 * once: for some time afterwards nfsd grants no other delegation of it.
 */
static void recall(void)
{
	static int files;
	char name[32];
	int fd, at_server;

	snprintf(name, sizeof(name), "recalled-%d", files++);
	at_server = open(path(exported, name), O_CREAT | O_TRUNC | O_WRONLY, 0644);
	if (at_server < 0 || close(at_server))
		err(1, "%s", name);
	fd = open(path(mounted, name), O_RDONLY);
	if (fd < 0)
		err(1, "%s", name);
	if (files == 1)
		must_be_delegated();
	at_server = open(path(exported, name), O_WRONLY);
	if (at_server < 0 || close(at_server) || close(fd) || unlink(path(exported, name)))
		err(1, "%s", name);
}

/* A mount has a connection of its own if the client has no other mount of this server. */
static void mount_umount(void)
{
	char source[256], options[256];

	snprintf(source, sizeof(source), "%s:%s", server, exported);
	snprintf(options, sizeof(options), "vers=4.2,proto=rdma,port=20049,addr=%s,clientaddr=%s",
		 server, server);
	if (mount(source, mounted, "nfs4", 0, options))
		err(1, "mount");
	if (umount(mounted))
		err(1, "umount");
}

static void idle(void)
{
	sleep(HOUR);
}

/* By the module modules/raw_verbs.c. */
static void raw(const char *how)
{
	char text[16];
	const int len = snprintf(text, sizeof(text), "%zu", bytes);
	static int fd = -1;

	if (fd < 0)
		fd = open(path("/sys/kernel/debug/raw_verbs", how), O_WRONLY);
	if (fd < 0 || write(fd, text, len) != len)
		err(1, "raw_verbs: %s %s", how, text);
}

static void raw_read(void)
{
	raw("read");
}

static void raw_write(void)
{
	raw("write");
}

static const struct {
	const char *name;
	void (*once)(void);
	size_t at_once;
} operations[] = {
	{ "READ", read_direct, 1 },
	{ "READ-8-at-once", read_at_once, 8 },
	{ "READ-64-at-once", read_at_once, 64 },
	{ "WRITE", write_direct, 1 },
	{ "READ-buffered", read_buffered, 1 },
	{ "WRITE-buffered", write_buffered, 1 },
	{ "GETATTR", getattr, 1 },
	{ "LOOKUP-miss", lookup_miss, 1 },
	{ "CREATE-REMOVE", create_remove, 1 },
	{ "READDIR", read_dir, 1 },
	{ "GETXATTR", get_xattr, 1 },
	{ "RECALL", recall, 1 },
	{ "MOUNT-UMOUNT", mount_umount, 1 },
	{ "IDLE-hour", idle, 1 },
	{ "raw-READ", raw_read, 1 },
	{ "raw-WRITE", raw_write, 1 },
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
	if (argc != 9)
		errx(2, "usage: operations ROW NAME BYTES WARM_UP MEASURED MOUNTED EXPORTED SERVER");
	const int row = atoi(argv[1]), warm = atoi(argv[4]), measured = atoi(argv[5]);
	void (*once)(void) = NULL;

	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (!strcmp(argv[2], operations[i].name)) {
			once = operations[i].once;
			at_once = operations[i].at_once;
		}
	bytes = strtoul(argv[3], NULL, 10);
	mounted = argv[6];
	exported = argv[7];
	server = argv[8];
	if (!once || row < 0 || MARK_END(row) >= MARKS + MARKS_LEN)
		errx(2, "no operation %s, or row %d", argv[2], row);
	if (bytes * at_once > CHUNK && at_once > 1)
		errx(2, "%zu READs of %zu bytes", at_once, bytes);
	if (posix_memalign(&buffer, 4096, CHUNK))
		errx(1, "no memory");
	memset(buffer, 0x5a, CHUNK);
	map_marks();
	for (int i = 0; i < warm; i += at_once)
		once();
	call(MARK_BEGIN(row));
	for (int i = 0; i < measured; i += at_once)
		once();
	call(MARK_END(row));
	return 0;
}
