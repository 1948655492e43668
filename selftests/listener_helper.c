// SPDX-License-Identifier: GPL-2.0
/*
 * Makes nfsd listen on a single address, before its threads start:
 *
 *   listener_helper ADDRESS PORT
 *
 * Uses netlink: /proc/fs/nfsd/portlist takes no address, and the nfsdctl of some distributions
 * sends attributes that older kernels reject.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/nfsd_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	char attrs[1024];
} request, answer;

static void begin(int type, int command)
{
	memset(&request, 0, sizeof(request));
	request.nl.nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN;
	request.nl.nlmsg_type = type;
	request.nl.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	request.genl.cmd = command;
	request.genl.version = 1;
}

static struct nlattr *end(void)
{
	return (void *)((char *)&request + request.nl.nlmsg_len);
}

static void put(int type, const void *value, size_t size)
{
	struct nlattr *attr = end();

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + size;
	memcpy(attr + 1, value, size);
	request.nl.nlmsg_len += NLA_ALIGN(attr->nla_len);
}

/* Sends the request and receives the first message of the reply. Exits on an error. */
static void ask(int fd, const char *what)
{
	if (send(fd, &request, request.nl.nlmsg_len, 0) < 0)
		err(1, "%s", what);
	if (recv(fd, &answer, sizeof(answer), 0) < 0)
		err(1, "%s", what);
	if (answer.nl.nlmsg_type == NLMSG_ERROR) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(&answer.nl))->error;
		if (errno)
			err(1, "%s", what);
	}
}

static int family(int fd)
{
	struct nlattr *attr = (void *)answer.attrs;
	char acknowledgement[256];

	begin(GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	put(CTRL_ATTR_FAMILY_NAME, NFSD_FAMILY_NAME, sizeof(NFSD_FAMILY_NAME));
	ask(fd, NFSD_FAMILY_NAME);
	if (recv(fd, acknowledgement, sizeof(acknowledgement), 0) < 0)
		err(1, NFSD_FAMILY_NAME);
	while ((char *)attr < (char *)&answer + answer.nl.nlmsg_len) {
		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(unsigned short *)(attr + 1);
		attr = (void *)((char *)attr + NLA_ALIGN(attr->nla_len));
	}
	errx(1, "the kernel does not support " NFSD_FAMILY_NAME);
}

int main(int argc, char **argv)
{
	const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct nlattr *listener;

	if (argc != 3 || inet_pton(AF_INET, argv[1], &sin.sin_addr) != 1)
		errx(2, "see the source");
	sin.sin_port = htons(atoi(argv[2]));
	if (fd < 0)
		err(1, "netlink");
	begin(family(fd), NFSD_CMD_LISTENER_SET);
	listener = end();
	put(NFSD_A_SERVER_SOCK_ADDR | NLA_F_NESTED, "", 0);
	put(NFSD_A_SOCK_ADDR, &sin, sizeof(sin));
	put(NFSD_A_SOCK_TRANSPORT_NAME, "rdma", sizeof("rdma"));
	listener->nla_len = (char *)end() - (char *)listener;
	ask(fd, "listening");
	return 0;
}
