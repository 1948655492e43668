/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mutated conversations, in batches.
 */

#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stdint.h>

#define BATCH	2000	/* messages */

struct fuzz_stats {
	unsigned int messages, lost_connections, exposed_replies;
};

extern struct fuzz_stats fuzz_stats;

int fuzz(bool server_end, uint64_t seed, unsigned int batches, unsigned int from);

bool fuzz_server_batch(void);
bool fuzz_client_batch(unsigned int batch);

#endif
