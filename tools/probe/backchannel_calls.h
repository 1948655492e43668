/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server's backchannel Calls (RFC 8167), and the client's Replies to them.
 */

#ifndef BACKCHANNEL_CALLS_H
#define BACKCHANNEL_CALLS_H

#include "transfer.h"

#define FORWARD_GRANT		32	/* credits that the server grants to its client */
#define BACKCHANNEL_CREDITS	16	/* that its own Calls request */

/* Credits that the client's last Reply has granted. */
extern unsigned int backchannel_granted;

void enc_backchannel_call(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits);
bool is_served(struct conn *c, uint32_t xid, uint32_t credits);
bool chunks_refused(struct conn *c, uint32_t xid);
bool has_processed(struct conn *c);
unsigned int backchannel_window(void);
int burst(struct conn *c, unsigned int n);
int burst_beyond(struct conn *c, unsigned int n, unsigned int least);

#endif
