/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mutated conversations, in batches.
 */

#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stdint.h>

int fuzz(bool server_end, uint64_t seed, unsigned int batches, unsigned int from);

#endif
