// SPDX-License-Identifier: GPL-2.0
/*
 * The protocol probe's command line. See usage[] below, and Documentation/probe.rst.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "flood.h"
#include "fuzz.h"
#include "group.h"
#include "hostile.h"
#include "pattern.h"
#include "peers.h"
#include "probe.h"

static const char usage[] =
	"Usage: probe [--from N] GROUP ADDRESS [PORT [DIRECTORY]]\n"
	"       probe --fuzz SEED BATCHES [--from N] fuzz_server|fuzz_client ADDRESS\n"
	"             [PORT [DIRECTORY]]\n"
	"       probe --flood KIND CLIENTS SECONDS ADDRESS [PORT [DIRECTORY]]\n"
	"       probe --stat-latency FILE SECONDS\n"
	"       probe\n"
	"\n"
	"Tests an implementation of RPC-over-RDMA with valid and invalid messages. Prints KTAP;\n"
	"each case names the requirements that it tests, as in Documentation/conformance.\n"
	"Without arguments, lists the groups.\n"
	"\n"
	"A group plays a client or a server:\n"
	"\n"
	"  client   ADDRESS and PORT (20049) are the server's. DIRECTORY (export) is a name in\n"
	"           its NFSv4 root. It contains a world-writable file \"probe\" with the contents\n"
	"           that --pattern prints, and so many other files that a listing does not fit in\n"
	"           a Short Reply. The server has to offer NFSv4.0.\n"
	"  server   ADDRESS is one of this machine. The probe makes the kernel mount from it. An\n"
	"           NFSv3 server at TCP port 2049 of this machine, which exports /DIRECTORY,\n"
	"           supplies the results.\n"
	"\n"
	"  --from N           start at case N, or batch N\n"
	"  --fuzz SEED BATCHES\n"
	"                     send batches of mutated messages, which follow from SEED\n"
	"  --flood KIND CLIENTS SECONDS\n"
	"                     run hostile clients; --flood alone lists the kinds\n"
	"  --stat-latency FILE SECONDS\n"
	"                     call stat() ten times a second; print the number of calls, and\n"
	"                     the mean and the longest time in ms\n"
	"  --is-client GROUP  exit with status 0 if the group plays a client\n"
	"  --pattern          print the contents of the file \"probe\"\n"
	"  --connect-and-leave ADDRESS\n"
	"                     request connections, and close them before they are accepted\n"
	"  -h, --help         print this text\n"
	"\n"
	"Environment:\n"
	"  TIME_FACTOR=N  multiply all time limits by N\n"
	"  SETTLE_MS=N    wait N milliseconds before the first message of each connection\n";

static const struct group *const groups[] = {
	&group_headers,
	&group_bad_read_lists,
	&group_chunks,
	&group_lists,
	&group_many_segments,
	&group_large_blocks,
	&group_split_items,
	&group_no_receives,
	&group_no_read_response,
	&group_read_throttle,
	&group_agreement,
	&group_memory_windows,
	&group_peers,
	&group_session,
	&group_unanswered,
	&group_pulled,
	&group_exposer,
	&group_backchannel_early,
	&group_backchannel,
	&group_replies,
	&group_other_servers,
	&group_timeouts,
	&group_exposed,
	&group_credits,
	&group_late_reply,
	&group_wrong_invalidate,
};

static int print_pattern(void)
{
	static uint8_t contents[AREA];

	fill_pattern(contents, 0, sizeof(contents));
	return fwrite(contents, sizeof(contents), 1, stdout) != 1;
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

static bool is_fuzz(const char *name)
{
	return !strcmp(name, "fuzz_server") || !strcmp(name, "fuzz_client");
}

/* A group that plays a client connects by conn_open(). */
static bool is_client(const char *name)
{
	const struct group *g = find(name);

	return g ? g->open == conn_open : !strcmp(name, "fuzz_server");
}

static int run_connect_and_leave(const char *address)
{
	probe.address = address;
	if (connect_and_leave())
		return 0;
	fprintf(stderr, "error: %s\n", probe.reason);
	return 1;
}

static int usage_error(void)
{
	fputs(usage, stderr);
	return 2;
}

/* ADDRESS [PORT [DIRECTORY]] */
static void set_peer(int argc, char **argv)
{
	probe.address = argv[0];
	if (argc > 1)
		probe.port = argv[1];
	if (argc > 2)
		probe.dir = argv[2];
	probe.next_xid = (uint32_t)getpid() << 20 | 0x1000;
}

/* KIND CLIENTS SECONDS ADDRESS [PORT [DIRECTORY]] */
static int run_flood(int argc, char **argv)
{
	if (!argc) {
		hostile_list();
		return 0;
	}
	if (argc < 4 || !hostile_find(argv[0]) || atoi(argv[1]) < 1)
		return usage_error();
	set_peer(argc - 3, argv + 3);
	return flood(argv[0], atoi(argv[1]), atoi(argv[2]));
}

int main(int argc, char **argv)
{
	const char *factor = getenv("TIME_FACTOR"), *ms = getenv("SETTLE_MS");
	unsigned int from = 1, batches = 0;
	const struct group *g;
	uint64_t seed = 0;

	if (factor && atoi(factor) > 0)
		probe.time_factor = atoi(factor);
	if (ms)
		probe.settle_ms = atoi(ms);
	if (argc == 1)
		return print_groups();
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		return fputs(usage, stdout) < 0;
	if (argc == 2 && !strcmp(argv[1], "--pattern"))
		return print_pattern();
	if (argc == 3 && !strcmp(argv[1], "--is-client"))
		return !is_client(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "--connect-and-leave"))
		return run_connect_and_leave(argv[2]);
	if (argc > 1 && !strcmp(argv[1], "--flood"))
		return run_flood(argc - 2, argv + 2);
	if (argc == 4 && !strcmp(argv[1], "--stat-latency"))
		return stat_latency(argv[2], atoi(argv[3]));
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
	if (argc < 3 || !from)
		return usage_error();
	set_peer(argc - 2, argv + 2);
	if (batches)
		return is_fuzz(argv[1]) ?
			fuzz(!strcmp(argv[1], "fuzz_server"), seed, batches, from) :
			usage_error();
	g = find(argv[1]);
	return g ? run_group(g, from) : usage_error();
}
