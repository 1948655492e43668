// SPDX-License-Identifier: GPL-2.0
/*
 * Work that takes a Long Call: NFSv3 has no chunk for the entries of an access control list.
 */

#include <endian.h>
#include <sys/xattr.h>
#include "probe.h"

#define NAME	"system.posix_acl_access"
#define USERS	300
#define NOBODY	0xffffffff

enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32 };

/* The form in which the kernel takes a list. */
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
	return (struct entry) { .tag = htole16(tag), .perm = htole16(6), .id = htole32(id) };
}

static void make(struct acl *acl)
{
	struct entry *to = acl->entries;
	unsigned int i;

	acl->version = htole32(2);
	*to++ = entry(USER_OBJ, NOBODY);
	for (i = 0; i < USERS; i++)
		*to++ = entry(USER, 1000 + i);
	*to++ = entry(GROUP_OBJ, NOBODY);
	*to++ = entry(MASK, NOBODY);
	*to++ = entry(OTHER, NOBODY);
}

/* What was set is looked at behind the client's back. */
int set_acl(void)
{
	static struct acl set, got;
	char path[128];
	int fd;

	make(&set);
	fd = open(MOUNTPOINT "/listed", O_RDWR | O_CREAT, 0666);
	if (fd < 0)
		return errno;
	close(fd);
	if (setxattr(MOUNTPOINT "/listed", NAME, &set, sizeof(set), 0))
		return errno;
	snprintf(path, sizeof(path), "/%s/listed", dir);
	if (getxattr(path, NAME, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return ENODATA;
	return memcmp(&set, &got, sizeof(got)) ? EBADMSG : 0;
}
