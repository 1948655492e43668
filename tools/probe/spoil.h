/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ways to make a Reply invalid.
 */

#ifndef SPOIL_H
#define SPOIL_H

#include "calls.h"

/* Spoils a valid Reply to a READ in this way. False if there are no more ways. */
typedef bool (*spoil_fn)(struct enc *e, const struct call *call, unsigned int way);

bool spoil_length(struct enc *e, const struct call *call, unsigned int way);
bool spoil_lists(struct enc *e, const struct call *call, unsigned int way);
bool spoil_chunk(struct enc *e, const struct call *call, unsigned int way);
bool spoil_xid(struct enc *e, const struct call *call, unsigned int way);
bool spoil_version(struct enc *e, const struct call *call, unsigned int way);
bool spoil_msgp(struct enc *e, const struct call *call, unsigned int way);
bool spoil_procedure(struct enc *e, const struct call *call, unsigned int way);
bool spoil_done(struct enc *e, const struct call *call, unsigned int way);
bool spoil_error(struct enc *e, const struct call *call, unsigned int way);

#endif
