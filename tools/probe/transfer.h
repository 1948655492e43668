/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sends, Receives, RDMA Reads and RDMA Writes on a connection.
 */

#ifndef TRANSFER_H
#define TRANSFER_H

#include "conn.h"
#include "encode.h"

/* A message that was received. */
struct reply {
	bool any;			/* whether one arrived in time */
	uint32_t len;
	bool invalidated;
	uint32_t invalidated_rkey;
	const uint8_t *p;		/* until the next get_reply() */
};

void post_recv(struct conn *c, unsigned int i);
bool wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms);

/* post_...() returns at once, wait_sent() waits for one of them, send_...() does both. */
bool post_msg(struct conn *c, const struct enc *e);
bool post_invalidating(struct conn *c, const struct enc *e, uint32_t handle);
bool wait_sent(struct conn *c);
bool send_msg(struct conn *c, const struct enc *e);
bool send_invalidating(struct conn *c, const struct enc *e, uint32_t handle);

bool get_reply(struct conn *c, struct reply *r, int ms);
bool exchange(struct conn *c, const struct enc *e, struct reply *r);

struct segment area_segment(const struct conn *c, unsigned int at, unsigned int len);
int rdma(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s, unsigned int at);
bool is_denial(struct conn *c, enum ibv_wr_opcode opcode, int status);
bool access_denied(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s,
		   int64_t by, unsigned int len);

#endif
