// SPDX-License-Identifier: GPL-2.0
/*
 * A connection, and what is sent and received on it.
 */

#include "probe.h"

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

bool event(struct conn *c, enum rdma_cm_event_type want, int ms)
{
	struct pollfd pfd = { .fd = c->ec->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	enum rdma_cm_event_type got;

	if (poll(&pfd, 1, ms) <= 0)
		return fail("no event %d in %d ms", want, ms);
	if (rdma_get_cm_event(c->ec, &ev))
		return fail("rdma_get_cm_event: %s", strerror(errno));
	got = ev->event;
	if (got == RDMA_CM_EVENT_ESTABLISHED) {
		c->peer_private_len = ev->param.conn.private_data_len;
		if (c->peer_private_len > (int)sizeof(c->peer_private))
			c->peer_private_len = sizeof(c->peer_private);
		if (c->peer_private_len)
			memcpy(c->peer_private, ev->param.conn.private_data, c->peer_private_len);
	}
	rdma_ack_cm_event(ev);
	return got == want ? true : fail("event %d instead of %d", got, want);
}

void post_recv(struct conn *c, unsigned int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->recv + i * RECV_SIZE,
		.length = RECV_SIZE,
		.lkey = c->recv_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	ibv_post_recv(c->id->qp, &wr, &bad);
}

/* What the connection needs of its device. */
static bool furnish(struct conn *c)
{
	struct ibv_qp_init_attr attr = { 0 };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
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
	c->send = aligned_alloc(4096, 65536);
	c->area = aligned_alloc(4096, AREA);
	memset(c->area, 0xee, AREA);
	c->recv_mr = ibv_reg_mr(c->pd, c->recv, RECVS * RECV_SIZE, IBV_ACCESS_LOCAL_WRITE);
	c->send_mr = ibv_reg_mr(c->pd, c->send, 65536, 0);
	c->area_mr = ibv_reg_mr(c->pd, c->area, AREA, access);
	if (!c->recv_mr || !c->send_mr || !c->area_mr)
		return fail("ibv_reg_mr: %s", strerror(errno));
	for (i = 0; i < RECVS; i++)
		post_recv(c, i);
	return true;
}

struct conn *conn_start(const void *priv, int priv_len, int depth)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *sin = (void *)&ss;
	struct sockaddr_in6 *sin6 = (void *)&ss;
	struct rdma_conn_param param = { 0 };

	if (inet_pton(AF_INET, server, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(atoi(port));
	} else {
		inet_pton(AF_INET6, server, &sin6->sin6_addr);
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(atoi(port));
	}
	c->ec = rdma_create_event_channel();
	if (!c->ec || rdma_create_id(c->ec, &c->id, NULL, RDMA_PS_TCP)) {
		fail("rdma_create_id: %s", strerror(errno));
		return NULL;
	}
	if (rdma_resolve_addr(c->id, NULL, (void *)&ss, 2000) ||
	    !event(c, RDMA_CM_EVENT_ADDR_RESOLVED, 3000) ||
	    rdma_resolve_route(c->id, 2000) ||
	    !event(c, RDMA_CM_EVENT_ROUTE_RESOLVED, 3000))
		return NULL;
	if (!furnish(c))
		return NULL;
	param.private_data = priv;
	param.private_data_len = priv_len;
	param.responder_resources = depth;
	/* Reads of its own only where the second block says that it pulls. */
	param.initiator_depth = priv_len > 8 ? depth : 0;
	param.retry_count = 6;
	param.rnr_retry_count = 0;
	if (rdma_connect(c->id, &param)) {
		fail("rdma_connect: %s", strerror(errno));
		return NULL;
	}
	return c;
}

struct conn *conn_open(const void *priv, int priv_len, int depth)
{
	struct conn *c = conn_start(priv, priv_len, depth);

	return c && event(c, RDMA_CM_EVENT_ESTABLISHED, 5000) ? c : NULL;
}

/* The first client that comes. */
struct conn *conn_accept(void)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	struct rdma_conn_param param = {
		.private_data = private_plain, .private_data_len = sizeof(private_plain),
	};
	struct rdma_cm_event *ev;
	struct rdma_cm_id *listener;

	c->ec = rdma_create_event_channel();
	inet_pton(AF_INET, server, &sin.sin_addr);
	if (!c->ec || rdma_create_id(c->ec, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (void *)&sin) || rdma_listen(listener, 1) ||
	    rdma_get_cm_event(c->ec, &ev)) {
		fail("listening: %s", strerror(errno));
		return NULL;
	}
	c->id = ev->id;
	rdma_ack_cm_event(ev);
	if (!furnish(c))
		return NULL;
	if (rdma_accept(c->id, &param)) {
		fail("rdma_accept: %s", strerror(errno));
		return NULL;
	}
	return event(c, RDMA_CM_EVENT_ESTABLISHED, 5000) ? c : NULL;
}

void conn_close(struct conn *c)
{
	if (!c)
		return;
	rdma_disconnect(c->id);
	rdma_destroy_qp(c->id);
	ibv_dereg_mr(c->recv_mr);
	ibv_dereg_mr(c->send_mr);
	ibv_dereg_mr(c->area_mr);
	ibv_destroy_cq(c->scq);
	ibv_destroy_cq(c->rcq);
	ibv_dealloc_pd(c->pd);
	rdma_destroy_id(c->id);
	rdma_destroy_event_channel(c->ec);
	free(c->recv);
	free(c->send);
	free(c->area);
	free(c);
}

bool wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (;;) {
		if (ibv_poll_cq(cq, 1, wc) > 0)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 > ms)
			return false;
		usleep(500);
	}
}

bool post_msg(struct conn *c, const struct enc *e)
{
	struct ibv_sge sge = { .lkey = c->send_mr->lkey, .length = e->n };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (c->send_used + e->n > 65536)
		c->send_used = 0;
	memcpy(c->send + c->send_used, e->b, e->n);
	sge.addr = (uintptr_t)c->send + c->send_used;
	c->send_used += (e->n + 63) & ~63;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		return fail("ibv_post_send: %s", strerror(errno));
	return true;
}

bool send_msg(struct conn *c, const struct enc *e)
{
	struct ibv_wc wc;

	if (!post_msg(c, e))
		return false;
	if (!wait_cq(c->scq, &wc, 3000))
		return fail("the Send did not complete");
	if (wc.status)
		return fail("Send: %s", ibv_wc_status_str(wc.status));
	return true;
}

bool get_reply(struct conn *c, struct reply *r, int ms)
{
	static uint8_t copy[RECV_SIZE];
	struct ibv_wc wc;

	memset(r, 0, sizeof(*r));
	if (!wait_cq(c->rcq, &wc, ms))
		return true;
	if (wc.status)
		return fail("Receive: %s", ibv_wc_status_str(wc.status));
	r->any = true;
	r->len = wc.byte_len;
	r->invalidated = wc.wc_flags & IBV_WC_WITH_INV;
	r->invalidated_rkey = r->invalidated ? wc.invalidated_rkey : 0;
	memset(copy, 0, sizeof(copy));
	memcpy(copy, c->recv + wc.wr_id * RECV_SIZE, r->len);
	r->p = copy;
	post_recv(c, wc.wr_id);
	return true;
}

bool exchange(struct conn *c, const struct enc *e, struct reply *r)
{
	if (!send_msg(c, e) || !get_reply(c, r, 5000))
		return false;
	return r->any ? true : fail("no answer");
}
