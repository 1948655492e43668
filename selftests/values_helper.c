// SPDX-License-Identifier: GPL-2.0
/*
 * Values of an extended attribute, of every length in steps of four octets:
 *
 *   values_helper FILE-ON-SERVER FILE LEAST MOST
 *
 * sets each on the server and reads it on the client, who must find the same.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "pattern.h"

#define LONGEST	65536

int main(int argc, char **argv)
{
	static unsigned char value[LONGEST], found[LONGEST];

	if (argc != 5)
		errx(2, "usage: values_helper FILE-ON-SERVER FILE LEAST MOST");
	const size_t least = strtoul(argv[3], NULL, 10);
	const size_t most = strtoul(argv[4], NULL, 10);

	for (size_t octets = least; octets <= most; octets += 4) {
		char name[32];

		/* Each has a name of its own, of one length: the client remembers. */
		snprintf(name, sizeof(name), "user.%06zu", octets);
		pattern_fill(value, octets, 0, octets);
		if (setxattr(argv[1], name, value, octets, 0))
			err(1, "set %s", name);
		if (getxattr(argv[2], name, found, sizeof(found)) != (ssize_t)octets)
			err(1, "get %s", name);
		if (memcmp(value, found, octets))
			errx(1, "%s: wrong value", name);
		if (removexattr(argv[1], name))
			err(1, "remove %s", name);
	}
	return 0;
}
