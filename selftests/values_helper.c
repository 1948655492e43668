// SPDX-License-Identifier: GPL-2.0
/*
 * Sets extended attributes on the server and compares their values on the client:
 *
 *   values_helper FILE-ON-SERVER FILE MIN MAX
 *
 * The values have MIN to MAX bytes, in steps of four.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "pattern.h"

#define MAX_VALUE	65536

int main(int argc, char **argv)
{
	static unsigned char value[MAX_VALUE], found[MAX_VALUE];

	if (argc != 5)
		errx(2, "usage: values_helper FILE-ON-SERVER FILE MIN MAX");
	const size_t min = strtoul(argv[3], NULL, 10);
	const size_t max = strtoul(argv[4], NULL, 10);

	for (size_t len = min; len <= max; len += 4) {
		char name[32];

		/* Different names of equal length: the client caches values. */
		snprintf(name, sizeof(name), "user.%06zu", len);
		pattern_fill(value, len, 0, len);
		if (setxattr(argv[1], name, value, len, 0))
			err(1, "set %s", name);
		if (getxattr(argv[2], name, found, sizeof(found)) != (ssize_t)len)
			err(1, "get %s", name);
		if (memcmp(value, found, len))
			errx(1, "%s: wrong value", name);
		if (removexattr(argv[1], name))
			err(1, "remove %s", name);
	}
	return 0;
}
