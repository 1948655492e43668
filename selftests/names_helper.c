// SPDX-License-Identifier: GPL-2.0
/*
 * Makes, checks and removes many directory entries:
 *
 *   names_helper COMMAND KIND DIR FIRST LAST
 *
 * COMMAND is make, check or remove. KIND is "links" (symbolic links; the target of link n has n
 * bytes) or "files" (empty files with names of 10 to 209 bytes). Check fails unless DIR contains
 * exactly these names, each once.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool links;
static int dir, first, last;

static void name_of(int n, char *name)
{
	sprintf(name, "%0*d", links ? 10 : 10 + n % 200, n);
}

static void target_of(int n, char *target)
{
	memset(target, 'a' + n % 26, n);
	target[n] = '\0';
}

static void make(int n)
{
	char name[256], target[4097];
	int fd;

	name_of(n, name);
	if (links) {
		target_of(n, target);
		if (symlinkat(target, dir, name))
			err(1, "symlink of %d bytes", n);
		return;
	}
	fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (fd < 0 || close(fd))
		err(1, "creating %s", name);
}

static void check_link(int n)
{
	char name[256], target[4097], got[4097];
	ssize_t length;

	name_of(n, name);
	target_of(n, target);
	length = readlinkat(dir, name, got, sizeof(got));
	if (length < 0)
		err(1, "readlink of %d bytes", n);
	if (length != n || memcmp(got, target, n))
		errx(1, "readlink of %d bytes: got %zd different bytes", n, length);
}

static void check_entries(void)
{
	char *seen = calloc(last + 1, 1);
	char name[256];
	struct dirent *entry;
	DIR *stream = fdopendir(dup(dir));
	int n, count = 0;

	if (!seen || !stream)
		err(1, "opendir");
	while ((entry = readdir(stream))) {
		if (entry->d_name[0] == '.')
			continue;
		n = atoi(entry->d_name);
		if (n < first || n > last)
			errx(1, "unexpected name: %s", entry->d_name);
		name_of(n, name);
		if (strcmp(name, entry->d_name))
			errx(1, "%s should be %s", entry->d_name, name);
		if (seen[n]++)
			errx(1, "%s is listed twice", name);
		count++;
	}
	if (count != last - first + 1)
		errx(1, "%d names of %d", count, last - first + 1);
	closedir(stream);
	free(seen);
}

static void discard(int n)
{
	char name[256];

	name_of(n, name);
	if (unlinkat(dir, name, 0))
		err(1, "unlink %s", name);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		errx(2, "see the source");
	links = !strcmp(argv[2], "links");
	dir = open(argv[3], O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		err(1, "%s", argv[3]);
	first = atoi(argv[4]);
	last = atoi(argv[5]);
	if (first < 1 || last < first || (links && last > 4095))
		errx(2, "see the source");

	if (!strcmp(argv[1], "check"))
		check_entries();
	for (int n = first; n <= last; n++) {
		if (!strcmp(argv[1], "make"))
			make(n);
		else if (!strcmp(argv[1], "remove"))
			discard(n);
		else if (links)
			check_link(n);
	}
	return 0;
}
