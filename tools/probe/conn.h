/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection, as a client or as a server, and its resources.
 */

#ifndef CONN_H
#define CONN_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include "params.h"

#define RECVS		160		/* Receives posted: a few more than most servers grant */
#define RECV_SIZE	8192
#define SEND_SIZE	(256 << 10)
#define AREA		(4 << 20)	/* bytes of memory exposed to the peer */

struct conn {
	const struct params *params;
	struct rdma_event_channel *ec;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_mr *recv_mr, *send_mr, *area_mr;
	uint8_t *recv, *send, *area;
	uint8_t peer_private[256];
	int peer_private_len;
	unsigned int send_used;
	bool disconnected;		/* by the peer, as far as disconnected() has seen */
};

struct conn *conn_start(const struct params *params);
struct conn *conn_request(const struct params *params);
bool conn_settled(struct conn *c, bool *accepted);
struct conn *conn_open(const struct params *params);
bool conn_listen(void);
struct conn *conn_accept(const struct params *params, int ms);
void conn_close(struct conn *c);

bool event(struct conn *c, enum rdma_cm_event_type want, int ms);
bool disconnected(struct conn *c);
bool wait_disconnected(struct conn *c, int ms);

bool is_iwarp(const struct conn *c);
uint64_t area_addr(const struct conn *c, unsigned int offset);
bool set_min_rnr_timer(struct conn *c);

#endif
