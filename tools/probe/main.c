// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that says whatever it is told to: a client of any RPC-over-RDMA server, or
 * a server for the client of this machine's kernel. Checks how the other end takes
 * every form of message, right and wrong. Output is KTAP; behind the name of a case
 * are the requirements that it shows, by their names in Documentation/conformance.
 *
 * Usage: probe [--fuzz SEED BATCHES] [--from N] GROUP ADDRESS [PORT [DIRECTORY]]
 *
 * Without arguments it lists the groups; "probe --is-client GROUP" succeeds where it
 * plays the client; "probe --pattern" prints the file that it wants to find. "probe --shy
 * ADDRESS" asks for connections, leaves before it gets them, and judges nothing.
 *
 * As a client: ADDRESS is the server's, DIRECTORY is a name below its NFSv4 root
 * (default "export"). It holds a file "probe" of 4 MiB that anybody can write to, and
 * enough other files that its listing does not fit a short Reply. NFSv4.0 is spoken,
 * with anonymous state, so the server has to offer that minor version.
 *
 * As a server: ADDRESS is one of this machine, at which the kernel's client is told to
 * mount. What it asks is answered by an honest NFSv3 server at TCP port 2049 of this
 * machine, which serves the same directory, at /DIRECTORY here.
 *
 * The groups fuzz_server and fuzz_client, with --fuzz SEED BATCHES, send mutated
 * messages to that end, each batch of them from the seed and its number.
 *
 * PATIENCE in the environment is a factor for all time limits.
 */

#include "probe.h"

const char *server, *port = "20049", *dir = "export";
uint32_t next_xid;
int patience = 1;
int settling;

static const struct group *const groups[] = {
	&group_headers,
	&group_chunks,
	&group_lists,
	&group_split_items,
	&group_no_receives,
	&group_no_read_response,
	&group_read_throttle,
	&group_agreement,
	&group_memory_windows,
	&group_peers,
	&group_session,
	&group_pulled,
	&group_exposer,
	&group_backchannel_early,
	&group_backchannel,
	&group_replies,
	&group_exposed,
	&group_credits,
	&group_wrong_invalidate,
};

static int print_file(void)
{
	static uint8_t octets[AREA];

	fill(octets, 0, sizeof(octets));
	return fwrite(octets, sizeof(octets), 1, stdout) != 1;
}

static const struct group *find(const char *name)
{
	unsigned int i;

	for (i = 0; i < COUNT(groups); i++)
		if (!strcmp(name, groups[i]->name))
			return groups[i];
	return NULL;
}

static int print_groups(void)
{
	unsigned int i;

	for (i = 0; i < COUNT(groups); i++)
		printf("%-18s %s\n", groups[i]->name, groups[i]->about);
	return 0;
}

static int is_fuzz(const char *name)
{
	return !strcmp(name, "fuzz_server") || !strcmp(name, "fuzz_client");
}

/* Their own connections to a server are what clients have. */
static int is_client(const char *name)
{
	const struct group *g = find(name);

	return !(g ? g->open == conn_open : !strcmp(name, "fuzz_server"));
}

int main(int argc, char **argv)
{
	const char *factor = getenv("PATIENCE"), *ms = getenv("SETTLING");
	unsigned int from = 1, batches = 0;
	const struct group *g;
	uint64_t seed = 0;

	if (factor && atoi(factor) > 0)
		patience = atoi(factor);
	if (ms)
		settling = atoi(ms);
	if (argc == 1)
		return print_groups();
	if (argc == 2 && !strcmp(argv[1], "--pattern"))
		return print_file();
	if (argc == 3 && !strcmp(argv[1], "--is-client"))
		return is_client(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "--shy")) {
		server = argv[2];
		if (ask_and_leave())
			return 0;
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	if (argc > 3 && !strcmp(argv[1], "--fuzz")) {
		seed = strtoull(argv[2], NULL, 0);
		batches = atoi(argv[3]);
		argc -= 3;
		argv += 3;
	}
	if (argc > 2 && !strcmp(argv[1], "--from")) {
		from = atoi(argv[2]);
		argc -= 2;
		argv += 2;
	}
	g = argc > 1 && !batches ? find(argv[1]) : NULL;
	if (argc < 3 || !from || (!g && !(batches && is_fuzz(argv[1])))) {
		fprintf(stderr, "usage: probe [--fuzz SEED BATCHES] [--from N] GROUP ADDRESS"
			" [PORT [DIRECTORY]]\n");
		return 2;
	}
	server = argv[2];
	if (argc > 3)
		port = argv[3];
	if (argc > 4)
		dir = argv[4];
	next_xid = (uint32_t)getpid() << 20 | 0x1000;
	if (g)
		return run_group(g, from);
	return fuzz(!strcmp(argv[1], "fuzz_server"), seed, batches, from);
}
