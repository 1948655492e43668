// SPDX-License-Identifier: GPL-2.0
/*
 * Sets or checks an extended attribute of each SIZE, each on its own file in DIR:
 *
 *   attributes_helper set DIR SIZE...
 *   attributes_helper check DIR SIZE...
 *
 * Gets an attribute, or the list of attributes, with a buffer of each SIZE and compares the result
 * with that for a large buffer:
 *
 *   attributes_helper get FILE NAME SIZE...
 *   attributes_helper get-long FILE NAME SIZE...
 *   attributes_helper list FILE SIZE...
 *
 * Size 0 asks for the length. A buffer that is too small must get ERANGE and must not be written
 * past its end. With get-long, EIO is valid as well: the NFS client provides a Reply chunk that is
 * little larger than the buffer, and the RPC fails if the Reply does not fit.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pattern.h"

#define LARGE	65536
#define CANARY	0x5a

static const char *file, *name;
static int too_long = ERANGE;

static ssize_t ask(char *buffer, size_t size)
{
	return name ? getxattr(file, name, buffer, size) :
		      listxattr(file, buffer, size);
}

static int failed(size_t size, const char *what, ssize_t got)
{
	printf("buffer of %zu: %s (%zd, %s)\n", size, what, got,
	       got < 0 ? strerror(errno) : "no error");
	return 1;
}

static int try_size(size_t size, const char *whole, ssize_t length)
{
	static char buffer[LARGE + 64];
	ssize_t got;

	memset(buffer, CANARY, sizeof(buffer));
	errno = 0;
	got = ask(size ? buffer : NULL, size);
	for (size_t i = size; i < sizeof(buffer); i++)
		if (buffer[i] != CANARY)
			return failed(size, "written past the end", got);
	if (size == 0)
		return got == length ? 0 : failed(size, "wrong length", got);
	if ((ssize_t)size < length) {
		if (got == -1 && (errno == ERANGE || errno == too_long))
			return 0;
		return failed(size, "not refused with ERANGE", got);
	}
	if (got != length || memcmp(buffer, whole, length))
		return failed(size, "wrong answer", got);
	return 0;
}

static int ask_with(char **sizes)
{
	static char whole[LARGE];
	ssize_t length;
	int bad = 0;

	/* Small buffers first, so that the client has not cached the value yet. */
	for (char **each = sizes; *each; each++) {
		size_t size = atoll(*each);

		if (ask(size ? whole : NULL, size) < 0 && errno != ERANGE &&
		    errno != too_long)
			bad |= failed(size, "refused", -1);
	}
	length = ask(whole, sizeof(whole));
	if (length < 0)
		err(1, "%s", file);
	for (char **each = sizes; *each; each++)
		bad |= try_size(atoll(*each), whole, length);
	return bad;
}

static void set_value(const char *path, size_t size, const char *value)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0644);

	if (fd < 0 || fsetxattr(fd, "user.value", value, size, 0) || close(fd))
		err(1, "setting %zu bytes", size);
}

static void check_value(const char *path, size_t size, const char *value)
{
	static char got[LARGE];
	ssize_t length = getxattr(path, "user.value", got, sizeof(got));

	if (length < 0)
		err(1, "getting %zu bytes", size);
	if (length != (ssize_t)size || memcmp(got, value, size))
		errx(1, "set %zu bytes, got %zd different bytes", size, length);
}

static int values(bool set, const char *dir, char **sizes)
{
	static unsigned char value[LARGE];
	char path[4096];

	for (; *sizes; sizes++) {
		size_t size = atoll(*sizes);

		if (size > LARGE)
			errx(2, "%zu is too large", size);
		snprintf(path, sizeof(path), "%s/%zu", dir, size);
		pattern_fill(value, size, 0, size);
		if (set)
			set_value(path, size, (char *)value);
		else
			check_value(path, size, (char *)value);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		errx(2, "see the source");
	file = argv[2];
	if (!strcmp(argv[1], "set") || !strcmp(argv[1], "check"))
		return values(!strcmp(argv[1], "set"), file, argv + 3);
	if (!strcmp(argv[1], "list"))
		return ask_with(argv + 3);
	if (!strcmp(argv[1], "get-long"))
		too_long = EIO;
	name = argv[3];
	return ask_with(argv + 4);
}
