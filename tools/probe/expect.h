/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of what a server sends.
 */

#ifndef EXPECT_H
#define EXPECT_H

#include "transfer.h"

/* Checks of one message. */
bool is_error(const struct reply *r, uint32_t xid, uint32_t err);
bool is_err_vers(const struct reply *r, uint32_t xid, uint32_t vers);
bool reply_body(const struct reply *r, uint32_t xid, unsigned int *at);
bool answers_one(const struct reply *r, uint32_t first, unsigned int n, bool *seen,
		 unsigned int *at);
bool chunk_returned(const struct reply *r, unsigned int *w, const uint8_t *offered, uint32_t len);
bool same_chunk_returned(const struct reply *r, unsigned int *w, const struct enc *call,
			 uint32_t len);
bool no_more_chunks(const struct reply *r, unsigned int w);
bool inline_len_is(const struct reply *r, unsigned int at, unsigned int len);

/* Checks of an RPC Reply, inline or in memory. */
bool compound_ok(const uint8_t *p, unsigned int ops);
bool compound_ok_xid(const uint8_t *p, uint32_t xid, unsigned int ops);

/* These send something themselves. */
bool alive(struct conn *c);
bool refused(struct conn *c, const struct enc *e, uint32_t xid, uint32_t err);
bool not_answered(struct conn *c, const struct enc *e);
bool ignored(struct conn *c, const struct enc *e);
bool compound_succeeds(struct conn *c, const struct enc *e, unsigned int ops);

#endif
