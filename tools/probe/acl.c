// SPDX-License-Identifier: GPL-2.0
/*
 * Work that takes a Long Call: NFSv3 has no chunk for the entries of an access control list.
 */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "probe.h"
#include "work.h"

#define XATTR		"system.posix_acl_access"
#define USERS		300
#define READ_WRITE	6
#define UNDEFINED_ID	0xffffffff	/* of entries that name no user and no group */

enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32 };

/* struct posix_acl_xattr_entry and struct posix_acl_xattr_header. */
struct entry {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	uint32_t version;
	struct entry entries[USERS + 4];
};

static struct entry entry(uint16_t tag, uint32_t id)
{
	return (struct entry) {
		.tag = htole16(tag), .perm = htole16(READ_WRITE), .id = htole32(id),
	};
}

static void make_acl(struct acl *acl)
{
	struct entry *to = acl->entries;
	unsigned int i;

	acl->version = htole32(2);
	*to++ = entry(USER_OBJ, UNDEFINED_ID);
	for (i = 0; i < USERS; i++)
		*to++ = entry(USER, 1000 + i);
	*to++ = entry(GROUP_OBJ, UNDEFINED_ID);
	*to++ = entry(MASK, UNDEFINED_ID);
	*to++ = entry(OTHER, UNDEFINED_ID);
}

/* Sets a list through the mount, and compares it with the one in the exported directory. */
int set_acl(void)
{
	static struct acl set, got;
	char path[128];
	int fd;

	make_acl(&set);
	fd = open(MOUNTPOINT "/listed", O_RDWR | O_CREAT, 0666);
	if (fd < 0)
		return errno;
	close(fd);
	if (setxattr(MOUNTPOINT "/listed", XATTR, &set, sizeof(set), 0))
		return errno;
	snprintf(path, sizeof(path), "/%s/listed", probe.dir);
	if (getxattr(path, XATTR, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return ENODATA;
	return memcmp(&set, &got, sizeof(got)) ? EBADMSG : 0;
}
