// SPDX-License-Identifier: GPL-2.0
/*
 * A connection.
 */

#include "probe.h"

char why[512];

#define ID	0xf6, 0xab, 0x0e, 0x18

const struct terms terms_plain = {
	.octets = { ID, 1, 0, 3, 3 }, .len = 8, .responder = 16, .longest = 4096,
};

const struct terms terms_slow = {
	.octets = { ID, 1, 0, 3, 3 }, .len = 8, .responder = 16, .longest = 4096, .slow = true,
};

const struct terms terms_none = { .responder = 16, .longest = 1024 };

const struct terms terms_inv = {
	.octets = { ID, 1, 1, 3, 3 }, .len = 8, .responder = 16, .longest = 4096,
};

const struct terms terms_1k = {
	.octets = { ID, 1, 0, 0, 0 }, .len = 8, .responder = 16, .longest = 1024,
};

const struct terms terms_no_reads = {
	.octets = { ID, 1, 0, 3, 3 }, .len = 8, .responder = 0, .longest = 4096,
};

bool fail(const char *fmt, ...)
{
	char text[sizeof(why)];
	va_list ap;

	/* What was said before may be among the arguments. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strcpy(why, text);
	return false;
}

static bool next_event(struct conn *c, enum rdma_cm_event_type *got, int ms)
{
	struct pollfd pfd = { .fd = c->ec->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	if (poll(&pfd, 1, ms) <= 0 || rdma_get_cm_event(c->ec, &ev))
		return false;
	*got = ev->event;
	/* A server has seen its client's before. */
	if (*got == RDMA_CM_EVENT_ESTABLISHED && ev->param.conn.private_data_len) {
		c->peer_private_len = ev->param.conn.private_data_len;
		memcpy(c->peer_private, ev->param.conn.private_data, c->peer_private_len);
	}
	rdma_ack_cm_event(ev);
	return true;
}

bool event(struct conn *c, enum rdma_cm_event_type want, int ms)
{
	enum rdma_cm_event_type got;

	if (!next_event(c, &got, ms * patience))
		return fail("no event %d in %d ms", want, ms * patience);
	return got == want ? true : fail("event %d instead of %d", got, want);
}

/* Has the other end left? */
bool gone(struct conn *c)
{
	enum rdma_cm_event_type got;

	if (next_event(c, &got, 0) && got != RDMA_CM_EVENT_ESTABLISHED)
		c->left = true;
	return c->left;
}

/* What the connection needs of its device. */
static bool furnish(struct conn *c)
{
	struct ibv_qp_init_attr attr = { 0 };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_MW_BIND;
	int i;

	c->pd = ibv_alloc_pd(c->id->verbs);
	c->scq = ibv_create_cq(c->id->verbs, 512, NULL, NULL, 0);
	c->rcq = ibv_create_cq(c->id->verbs, 2 * RECVS, NULL, NULL, 0);
	attr.send_cq = c->scq;
	attr.recv_cq = c->rcq;
	attr.qp_type = IBV_QPT_RC;
	attr.cap.max_send_wr = 256;
	attr.cap.max_recv_wr = 2 * RECVS;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	if (!c->pd || !c->scq || !c->rcq || rdma_create_qp(c->id, c->pd, &attr))
		return fail("resources: %s", strerror(errno));
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

static struct rdma_conn_param parameters(const struct terms *terms)
{
	return (struct rdma_conn_param) {
		.private_data = terms->len ? terms->octets : NULL,
		.private_data_len = terms->len,
		.responder_resources = terms->responder,
		.initiator_depth = terms->initiator,
		.retry_count = 6,
		.rnr_retry_count = terms->slow ? 7 : 0,
	};
}

static struct conn *give_up(struct conn *c)
{
	conn_close(c);
	return NULL;
}

static struct conn *conn_new(const struct terms *terms)
{
	struct conn *c = calloc(1, sizeof(*c));

	c->terms = terms;
	c->ec = rdma_create_event_channel();
	if (c->ec)
		return c;
	fail("rdma_create_event_channel: %s", strerror(errno));
	free(c);
	return NULL;
}

static void address(struct sockaddr_storage *ss)
{
	struct sockaddr_in *sin = (void *)ss;
	struct sockaddr_in6 *sin6 = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, server, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(atoi(port));
	} else {
		inet_pton(AF_INET6, server, &sin6->sin6_addr);
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(atoi(port));
	}
}

struct conn *conn_start(const struct terms *terms)
{
	struct rdma_conn_param param = parameters(terms);
	struct conn *c = conn_new(terms);
	struct sockaddr_storage ss;

	if (!c)
		return NULL;
	address(&ss);
	if (rdma_create_id(c->ec, &c->id, NULL, RDMA_PS_TCP)) {
		fail("rdma_create_id: %s", strerror(errno));
		return give_up(c);
	}
	if (terms->answers_in &&
	    rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			    (void *)&terms->answers_in, sizeof(terms->answers_in))) {
		fail("rdma_set_option: %s", strerror(errno));
		return give_up(c);
	}
	if (rdma_resolve_addr(c->id, NULL, (void *)&ss, 2000 * patience) ||
	    !event(c, RDMA_CM_EVENT_ADDR_RESOLVED, 3000) ||
	    rdma_resolve_route(c->id, 2000 * patience) ||
	    !event(c, RDMA_CM_EVENT_ROUTE_RESOLVED, 3000) || !furnish(c))
		return give_up(c);
	if (rdma_connect(c->id, &param)) {
		fail("rdma_connect: %s", strerror(errno));
		return give_up(c);
	}
	return c;
}

/* The other end takes the connection, or may say that it does not. */
bool conn_settled(struct conn *c, bool *taken)
{
	enum rdma_cm_event_type got;

	if (!next_event(c, &got, 5000 * patience))
		return fail("neither taken nor rejected");
	*taken = got == RDMA_CM_EVENT_ESTABLISHED;
	usleep(1000 * settling);
	return *taken || got == RDMA_CM_EVENT_REJECTED ? true : fail("event %d", got);
}

struct conn *conn_open(const struct terms *terms)
{
	struct conn *c = conn_start(terms);
	bool taken;

	if (!c || !conn_settled(c, &taken))
		return give_up(c);
	if (taken)
		return c;
	fail("the connection was rejected");
	return give_up(c);
}

static struct rdma_event_channel *listening;

bool conn_listen(void)
{
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;

	if (listening)
		return true;
	address(&ss);
	listening = rdma_create_event_channel();
	if (!listening || rdma_create_id(listening, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (void *)&ss) || rdma_listen(id, 16))
		return fail("listening: %s", strerror(errno));
	return true;
}

/* The next client that comes within that time, if any. */
struct conn *conn_accept(const struct terms *terms, int ms)
{
	struct pollfd pfd = { .fd = listening->fd, .events = POLLIN };
	struct rdma_conn_param param = parameters(terms);
	struct rdma_cm_event *ev;
	struct conn *c;
	bool asked;

	if (poll(&pfd, 1, ms * patience) <= 0 || rdma_get_cm_event(listening, &ev))
		return NULL;
	c = conn_new(terms);
	c->id = ev->id;
	asked = ev->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	c->peer_private_len = asked ? ev->param.conn.private_data_len : 0;
	if (c->peer_private_len)
		memcpy(c->peer_private, ev->param.conn.private_data, c->peer_private_len);
	param.initiator_depth = asked && ev->param.conn.initiator_depth ? 1 : 0;
	rdma_ack_cm_event(ev);
	if (!asked || rdma_migrate_id(c->id, c->ec) || !furnish(c) ||
	    rdma_accept(c->id, &param)) {
		fail("accepting: %s", strerror(errno));
		return give_up(c);
	}
	return event(c, RDMA_CM_EVENT_ESTABLISHED, 5000) ? c : give_up(c);
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

/* What is behind identifier and version in a block of the other end's private data. */
static const uint8_t *peer_block(const struct conn *c, const uint8_t id[5])
{
	static const uint8_t nothing[3];
	int i;

	for (i = 0; i + 8 <= c->peer_private_len; i++)
		if (!memcmp(c->peer_private + i, id, 5))
			return c->peer_private + i + 5;
	return nothing;
}

/* What the other end says of itself: flags, Send Size and Receive Size (RFC 8797 Section 4). */
static const uint8_t *peer_said(const struct conn *c)
{
	static const uint8_t id[] = { ID, 1 };

	return peer_block(c, id);
}

/* Whether the other end may use Remote Invalidation. */
bool peer_invalidates(const struct conn *c)
{
	return peer_said(c)[0] & 1;
}

/* Whether it says that it can pull Replies, or expose them. */
bool peer_pulls(const struct conn *c)
{
	static const uint8_t id[] = { 0xd3, 0x97, 0x1e, 0xa4, 1 };

	return peer_block(c, id)[0] & 1;
}

/* The longest message that it says it sends, and receives. */
unsigned int peer_sends(const struct conn *c)
{
	return (peer_said(c)[1] + 1) * 1024;
}

unsigned int peer_longest(const struct conn *c)
{
	return (peer_said(c)[2] + 1) * 1024;
}
