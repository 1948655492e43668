// SPDX-License-Identifier: GPL-2.0
/*
 * Repeats an operation that makes the client send a Call each time:
 *
 *   replies OPERATION COUNT MOUNTED EXPORTED
 *
 * MOUNTED and EXPORTED are the same directory at the client and at the server. Before
 * an operation whose result the client would cache, the server changes the object.
 * Prints nanoseconds per operation.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char *mounted, *exported;

static const char *path(const char *in, const char *name)
{
	static char buffer[4096];

	snprintf(buffer, sizeof(buffer), "%s/%s", in, name);
	return buffer;
}

static void change(const char *name)
{
	static int n;
	struct timespec times[2] = { { .tv_sec = ++n }, { .tv_sec = n } };

	if (utimensat(AT_FDCWD, path(exported, name), times, 0))
		err(1, "%s", name);
}

static void lookup(int n)
{
	struct stat st;
	char name[32];

	snprintf(name, sizeof(name), "file-%d", n % 100);
	if (stat(path(mounted, name), &st))
		err(1, "%s", name);
}

static void getattr(int n)
{
	static int fd = -1;
	struct stat st;

	(void)n;
	if (fd < 0)
		fd = open(path(mounted, "file-0"), O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		err(1, "fstat");
}

static void create(int n)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "new-%d-%d", getpid(), n);
	fd = open(path(mounted, name), O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (fd < 0 || close(fd))
		err(1, "%s", name);
}

static void list(const char *name)
{
	DIR *dir;

	change(name);
	dir = opendir(path(mounted, name));
	if (!dir)
		err(1, "%s", name);
	while (readdir(dir))
		;
	closedir(dir);
}

static void readdir_small(int n)
{
	(void)n;
	list("few");
}

static void readdir_large(int n)
{
	(void)n;
	list("many");
}

static void attribute(const char *name)
{
	static char value[65536];

	change("file-1");
	if (getxattr(path(mounted, "file-1"), name, value, sizeof(value)) < 0)
		err(1, "%s", name);
}

static void getxattr_small(int n)
{
	(void)n;
	attribute("user.small");
}

static void getxattr_large(int n)
{
	(void)n;
	attribute("user.large");
}

static const struct {
	const char *name;
	void (*once)(int n);
} operations[] = {
	{ "LOOKUP", lookup },
	{ "GETATTR", getattr },
	{ "CREATE", create },
	{ "READDIR-small", readdir_small },
	{ "READDIR-large", readdir_large },
	{ "getxattr-small", getxattr_small },
	{ "getxattr-large", getxattr_large },
};

int main(int argc, char **argv)
{
	struct timespec start, end;
	int count, n;
	size_t i;

	if (argc != 5)
		errx(2, "Usage: replies OPERATION COUNT MOUNTED EXPORTED");
	count = atoi(argv[2]);
	mounted = argv[3];
	exported = argv[4];
	for (i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
		if (strcmp(argv[1], operations[i].name))
			continue;
		clock_gettime(CLOCK_MONOTONIC, &start);
		for (n = 0; n < count; n++)
			operations[i].once(n);
		clock_gettime(CLOCK_MONOTONIC, &end);
		printf("%lld\n", ((end.tv_sec - start.tv_sec) * 1000000000LL +
				  end.tv_nsec - start.tv_nsec) / count);
		return 0;
	}
	errx(2, "unknown operation %s", argv[1]);
}
