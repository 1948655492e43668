/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server's exposed Replies, and the client's RDMA_DONEs for them.
 */

#ifndef EXPOSE_H
#define EXPOSE_H

#include "calls.h"

#define EXPOSED_AT	(AREA / 2)	/* where in the area Replies are exposed */

void forget_owed(void);
bool take_done(const struct call *call);

unsigned int place_reply(struct conn *c, struct call *call, unsigned int at);
void add_segment(struct conn *c, struct chunk *x, unsigned int at, uint32_t len);
bool announce(struct conn *c, uint32_t xid, const struct chunk *x, uint32_t position);
bool announce_message(struct conn *c, uint32_t xid, const struct enc *e);
bool expose_reply(struct conn *c, struct call *call);

#endif
