/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's handling of exposed Replies (Documentation/pulled-replies.rst).
 */

#ifndef EXPOSED_REPLY_H
#define EXPOSED_REPLY_H

#include "transfer.h"

#define LONG_READ	8001	/* bytes of file data in a Reply that is exposed */

/* A Reply that the server has exposed. */
struct exposed {
	uint32_t xid, length;
	unsigned int n;
	struct segment seg[SEGMENTS];
};

bool request_long_reply(struct conn *c, uint32_t xid);
bool parse_exposed(const struct reply *r, uint32_t xid, struct exposed *x, unsigned int *w);
bool get_exposed(struct conn *c, struct exposed *x);
int read_exposed(struct conn *c, const struct exposed *x);
bool pull_exposed(struct conn *c, const struct exposed *x);
bool send_done(struct conn *c, uint32_t xid);
bool post_done_invalidating(struct conn *c, uint32_t xid, uint32_t handle);

#endif
