/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mutations of messages, which follow from a seed.
 */

#ifndef MUTATE_H
#define MUTATE_H

#include "conn.h"
#include "encode.h"

void seed_random(uint64_t seed, uint64_t batch);
uint32_t random_below(uint32_t n);
void mutate(const struct conn *c, struct enc *e, unsigned int hdr_len);

#endif
