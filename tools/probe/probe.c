// SPDX-License-Identifier: GPL-2.0
/*
 * A client that says whatever it is told to: checks how a server takes every form
 * of RFC 8166 header, right and wrong. Output is KTAP.
 *
 * Usage: probe SERVER [PORT [DIRECTORY]]
 *
 * DIRECTORY is a name below the server's NFSv4 root (default "export"). It holds a
 * file "probe" of at least 1 MiB that anybody can write to, and enough other files
 * that its listing does not fit a short Reply. NFSv4.0 is spoken, with anonymous
 * state, so the server has to offer that minor version.
 */

#include "probe.h"

const char *server, *port = "20049", *dir = "export";
uint32_t next_xid = 0x1000;
char why[512];
static int test_no, failures;

static void run(const char *name, bool (*test)(struct conn *), const void *priv, int len, int depth)
{
	struct conn *c;
	bool ok;

	strcpy(why, "");
	c = conn_open(priv, len, depth);
	ok = c && test(c);
	printf("%sok %d - %s\n", ok ? "" : "not ", ++test_no, name);
	if (!ok) {
		printf("# %s\n", why);
		failures++;
	}
	fflush(stdout);
	conn_close(c);
}

#define RUN(name, test)	run(name, test, private_plain, 8, 16)

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "Usage: %s SERVER [PORT [DIRECTORY]]\n", argv[0]);
		return 2;
	}
	server = argv[1];
	if (argc > 2)
		port = argv[2];
	if (argc > 3)
		dir = argv[3];
	printf("KTAP version 1\n1..31\n");
	RUN("a Call without arguments", t_null);
	run("without private data", t_null, NULL, 0, 16);
	RUN("private data of the server", t_private);
	RUN("credits", t_credits);
	RUN("another version", t_version);
	RUN("too short to be a header", t_short);
	RUN("procedures that a server does not serve", t_procs);
	RUN("RDMA_NOMSG without a chunk", t_nomsg_empty);
	RUN("different XIDs in header and payload", t_xid);
	RUN("malformed lists", t_bad_lists);
	RUN("bad Positions", t_positions);
	RUN("bad Read lengths", t_read_lengths);
	RUN("the file to test with", t_file);
	RUN("WRITE by Read chunk, READ by Write chunk", t_write_read);
	RUN("Position-zero chunks", t_pzrc);
	RUN("several Read chunks", t_several);
	RUN("several Write chunks, one of them empty", t_two_results);
	RUN("chunks that are too small", t_too_small);
	RUN("Reply chunks", t_reply_chunk);
	RUN("Write chunk and Reply chunk", t_both);
	run("a peer with small Receives", t_threshold, private_1k, 8, 16);
	RUN("many Calls at a time", t_flood);
	run("Remote Invalidation if both ends want it", t_invalidate, private_inv, 8, 16);
	RUN("no Remote Invalidation otherwise", t_no_invalidate);
	run("a peer that answers no RDMA Read", t_no_reads, private_plain, 8, 0);
	RUN("a Call of the server", t_reverse_call);
	RUN("a Call of the server, refused", t_reverse_refused);
	RUN("a handle that is not one", t_bad_handle);
	RUN("peers that leave in the middle", t_leave);
	RUN("peers that leave too early", t_shy);
	RUN("and all is well", t_null);
	printf("# %d failed\n", failures);
	return !!failures;
}
