// SPDX-License-Identifier: GPL-2.0
/*
 * A connection, as a client or as a server, and its resources.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "conn.h"
#include "probe.h"
#include "transfer.h"

#define RESOLVE_MS	30000	/* for an address or a route */

static bool next_event(struct conn *c, enum rdma_cm_event_type *got, int ms)
{
	struct pollfd pfd = { .fd = c->ec->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	if (poll(&pfd, 1, ms) <= 0 || rdma_get_cm_event(c->ec, &ev))
		return false;
	*got = ev->event;
	/* A server got its client's private data with the connect request. */
	if (*got == RDMA_CM_EVENT_ESTABLISHED && ev->param.conn.private_data_len) {
		c->peer_private_len = ev->param.conn.private_data_len;
		memcpy(c->peer_private, ev->param.conn.private_data, c->peer_private_len);
	}
	rdma_ack_cm_event(ev);
	return true;
}

/* Checks that the next CM event comes within @ms, and is this one. */
bool event(struct conn *c, enum rdma_cm_event_type want, int ms)
{
	enum rdma_cm_event_type got;

	if (!next_event(c, &got, ms * probe.time_factor))
		return fail("no %s within %d ms", rdma_event_str(want), ms * probe.time_factor);
	return got == want ? true :
		fail("%s instead of %s", rdma_event_str(got), rdma_event_str(want));
}

/* Whether the peer has disconnected. */
bool disconnected(struct conn *c)
{
	enum rdma_cm_event_type got;

	if (next_event(c, &got, 0) && got != RDMA_CM_EVENT_ESTABLISHED)
		c->disconnected = true;
	return c->disconnected;
}

/* Waits until the peer has disconnected. */
bool wait_disconnected(struct conn *c, int ms)
{
	const int64_t start = now_ms();

	while (!disconnected(c) && now_ms() - start < ms * probe.time_factor)
		usleep(10000);
	return c->disconnected;
}

/* Allocates and registers what a connection needs, and posts all Receives. */
static bool allocate(struct conn *c)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 256, .max_recv_wr = 2 * RECVS,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	int i;

	c->pd = ibv_alloc_pd(c->id->verbs);
	c->scq = ibv_create_cq(c->id->verbs, 512, NULL, NULL, 0);
	c->rcq = ibv_create_cq(c->id->verbs, 2 * RECVS, NULL, NULL, 0);
	attr.send_cq = c->scq;
	attr.recv_cq = c->rcq;
	if (!c->pd || !c->scq || !c->rcq || rdma_create_qp(c->id, c->pd, &attr))
		return fail("creating PD, CQs and QP: %s", strerror(errno));
	c->recv = aligned_alloc(4096, RECVS * RECV_SIZE);
	c->send = aligned_alloc(4096, SEND_SIZE);
	c->area = aligned_alloc(4096, AREA);
	memset(c->area, 0xee, AREA);
	c->recv_mr = ibv_reg_mr(c->pd, c->recv, RECVS * RECV_SIZE, IBV_ACCESS_LOCAL_WRITE);
	c->send_mr = ibv_reg_mr(c->pd, c->send, SEND_SIZE, 0);
	c->area_mr = ibv_reg_mr(c->pd, c->area, AREA, access);
	if (!c->recv_mr || !c->send_mr || !c->area_mr)
		return fail("ibv_reg_mr: %s", strerror(errno));
	for (i = 0; i < RECVS; i++)
		post_recv(c, i);
	return true;
}

static struct rdma_conn_param conn_param(const struct params *params)
{
	return (struct rdma_conn_param) {
		.private_data = params->private_len ? params->private_data : NULL,
		.private_data_len = params->private_len,
		.responder_resources = params->responder,
		.initiator_depth = params->initiator,
		.retry_count = 6,
		.rnr_retry_count = params->rnr_forever ? 7 : 0,
	};
}

static struct conn *conn_abort(struct conn *c)
{
	conn_close(c);
	return NULL;
}

static struct conn *conn_new(const struct params *params)
{
	struct conn *c = calloc(1, sizeof(*c));

	c->params = params;
	c->ec = rdma_create_event_channel();
	if (c->ec)
		return c;
	fail("rdma_create_event_channel: %s", strerror(errno));
	free(c);
	return NULL;
}

static void parse_address(struct sockaddr_storage *ss)
{
	struct sockaddr_in *sin = (void *)ss;
	struct sockaddr_in6 *sin6 = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, probe.address, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(atoi(probe.port));
	} else {
		inet_pton(AF_INET6, probe.address, &sin6->sin6_addr);
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(atoi(probe.port));
	}
}

/* Finds the way to the server. */
static struct conn *conn_resolve(const struct params *params)
{
	struct conn *c = conn_new(params);
	struct sockaddr_storage ss;

	if (!c)
		return NULL;
	parse_address(&ss);
	if (rdma_create_id(c->ec, &c->id, NULL, RDMA_PS_TCP)) {
		fail("rdma_create_id: %s", strerror(errno));
		return conn_abort(c);
	}
	if (params->ack_timeout &&
	    rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			    (void *)&params->ack_timeout, sizeof(params->ack_timeout))) {
		fail("rdma_set_option: %s", strerror(errno));
		return conn_abort(c);
	}
	if (rdma_resolve_addr(c->id, NULL, (void *)&ss, RESOLVE_MS * probe.time_factor) ||
	    !event(c, RDMA_CM_EVENT_ADDR_RESOLVED, PATIENCE_MS) ||
	    rdma_resolve_route(c->id, RESOLVE_MS * probe.time_factor) ||
	    !event(c, RDMA_CM_EVENT_ROUTE_RESOLVED, PATIENCE_MS))
		return conn_abort(c);
	return c;
}

/* Connects once. Sets in_use if that fails because the port at this end is in use. */
static struct conn *conn_try(const struct params *params, const uint32_t *no_qp, bool *in_use)
{
	struct rdma_conn_param param = conn_param(params);
	struct conn *c = conn_resolve(params);

	*in_use = false;
	if (no_qp)
		param.qp_num = *no_qp;
	if (!c || (!no_qp && !allocate(c)))
		return conn_abort(c);
	if (!rdma_connect(c->id, &param))
		return c;
	*in_use = errno == EADDRINUSE;
	if (!*in_use)
		fail("rdma_connect: %s", strerror(errno));
	return conn_abort(c);
}

/*
 * iWARP: rdma_cm chooses the port at this end, then siw binds a TCP socket to the port, which
 * another TCP socket may use. rdma_cm chooses another port for the next attempt.
 */
static struct conn *conn_connect(const struct params *params, const uint32_t *no_qp)
{
	int tries = 10;
	struct conn *c;
	bool in_use;

	do {
		c = conn_try(params, no_qp, &in_use);
	} while (in_use && --tries);
	if (in_use)
		fail("rdma_connect: the port at this end was in use, ten times");
	return c;
}

/* Asks the server for a connection; conn_settled() waits for its answer. */
struct conn *conn_start(const struct params *params)
{
	return conn_connect(params, NULL);
}

/* The same, without a queue pair: the connection cannot be used if the server accepts it. */
struct conn *conn_request(const struct params *params)
{
	static uint32_t qp_num = 0x800000;	/* that no queue pair has, for the CM */
	uint32_t no_qp = qp_num++;

	return conn_connect(params, &no_qp);
}

/* Waits until the server accepts or rejects the connection. */
bool conn_settled(struct conn *c, bool *accepted)
{
	enum rdma_cm_event_type got;

	if (!next_event(c, &got, PATIENCE_MS * probe.time_factor))
		return fail("connect request neither accepted nor rejected");
	*accepted = got == RDMA_CM_EVENT_ESTABLISHED;
	usleep(1000 * probe.settle_ms);
	return *accepted || got == RDMA_CM_EVENT_REJECTED ? true :
		fail("connect request ended with %s", rdma_event_str(got));
}

struct conn *conn_open(const struct params *params)
{
	struct conn *c = conn_start(params);
	bool accepted;

	if (!c || !conn_settled(c, &accepted))
		return conn_abort(c);
	if (accepted)
		return c;
	fail("connect request rejected");
	return conn_abort(c);
}

static struct rdma_event_channel *listening;

bool conn_listen(void)
{
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;

	if (listening)
		return true;
	parse_address(&ss);
	listening = rdma_create_event_channel();
	if (!listening || rdma_create_id(listening, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (void *)&ss) || rdma_listen(id, 16))
		return fail("listening: %s", strerror(errno));
	return true;
}

/* Accepts the next client; NULL if none connects within @ms. */
struct conn *conn_accept(const struct params *params, int ms)
{
	struct pollfd pfd = { .fd = listening->fd, .events = POLLIN };
	struct rdma_conn_param param = conn_param(params);
	struct rdma_cm_event *ev;
	struct conn *c;
	bool requested;

	if (poll(&pfd, 1, ms * probe.time_factor) <= 0 || rdma_get_cm_event(listening, &ev))
		return NULL;
	c = conn_new(params);
	c->id = ev->id;
	requested = ev->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	c->peer_private_len = requested ? ev->param.conn.private_data_len : 0;
	if (c->peer_private_len)
		memcpy(c->peer_private, ev->param.conn.private_data, c->peer_private_len);
	param.initiator_depth = requested && ev->param.conn.initiator_depth ? 1 : 0;
	rdma_ack_cm_event(ev);
	if (!requested || rdma_migrate_id(c->id, c->ec) || !allocate(c) ||
	    rdma_accept(c->id, &param)) {
		fail("accepting: %s", strerror(errno));
		return conn_abort(c);
	}
	return event(c, RDMA_CM_EVENT_ESTABLISHED, PATIENCE_MS) ? c : conn_abort(c);
}

void conn_close(struct conn *c)
{
	if (!c)
		return;
	if (c->id && c->id->qp) {
		rdma_disconnect(c->id);
		rdma_destroy_qp(c->id);
	}
	if (c->recv_mr)
		ibv_dereg_mr(c->recv_mr);
	if (c->send_mr)
		ibv_dereg_mr(c->send_mr);
	if (c->area_mr)
		ibv_dereg_mr(c->area_mr);
	if (c->scq)
		ibv_destroy_cq(c->scq);
	if (c->rcq)
		ibv_destroy_cq(c->rcq);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	if (c->id)
		rdma_destroy_id(c->id);
	rdma_destroy_event_channel(c->ec);
	free(c->recv);
	free(c->send);
	free(c->area);
	free(c);
}

bool is_iwarp(const struct conn *c)
{
	return c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* The RDMA offset of a byte in the area. */
uint64_t area_addr(const struct conn *c, unsigned int offset)
{
	return (uintptr_t)c->area + offset;
}

/* Makes the peer retry soon after an RNR NAK, so that it does so often within a time limit. */
bool set_min_rnr_timer(struct conn *c)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 12 };

	return !ibv_modify_qp(c->id->qp, &attr, IBV_QP_MIN_RNR_TIMER) ? true :
		fail("ibv_modify_qp: %s", strerror(errno));
}
