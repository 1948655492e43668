// SPDX-License-Identifier: GPL-2.0
/*
 * Mutated conversations, in batches. Each batch is a case. Its messages follow from the seed and
 * the number of the batch alone. Connections may end. After each batch the other end has to serve
 * a valid client, or to call a valid server.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>
#include "fuzz.h"
#include "mutate.h"
#include "probe.h"

struct fuzz_stats fuzz_stats;

int fuzz(bool server_end, uint64_t seed, unsigned int batches, unsigned int from)
{
	unsigned int i, failures = 0;
	const time_t start = time(NULL);

	printf("KTAP version 1\n1..%u\n", batches);
	for (i = from; i <= batches; i++) {
		bool ok;

		printf("# case %u - seed %llu\n", i, (unsigned long long)seed);
		fflush(stdout);
		strcpy(probe.reason, "");
		seed_random(seed, i);
		probe.next_xid = random_below(0xffffffff);
		ok = server_end ? fuzz_server_batch() : fuzz_client_batch(i);
		if (!ok)
			printf("# %s\n", probe.reason);
		printf("%sok %u - seed %llu\n", ok ? "" : "not ", i, (unsigned long long)seed);
		failures += !ok;
	}
	printf("# %u messages in %u s, %u connections lost, %u Replies exposed, %u batches failed\n",
	       fuzz_stats.messages, (unsigned int)(time(NULL) - start),
	       fuzz_stats.lost_connections, fuzz_stats.exposed_replies, failures);
	return !!failures;
}
