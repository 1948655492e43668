// SPDX-License-Identifier: GPL-2.0
/*
 * A client that says whatever it is told to: checks how a server takes every form
 * of RFC 8166 header, right and wrong. Output is KTAP.
 *
 * Usage: probe SERVER [PORT [DIRECTORY]]
 *
 * DIRECTORY is a name below the server's NFSv4 root (default "export"). It holds a
 * file "probe" of at least 1 MiB that anybody can write to, and enough other files
 * that its listing does not fit a short Reply. NFSv4.0 is spoken, with anonymous
 * state, so the server has to offer that minor version.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECVS		64
#define RECV_SIZE	4096
#define AREA		(4 << 20)

enum { MSG, NOMSG, MSGP, DONE, ERROR };
enum { ERR_VERS = 1, ERR_CHUNK = 2 };
enum { GETFH = 10, LOOKUP = 15, PUTROOTFH = 24, READ = 25, READDIR = 26, WRITE = 38 };

struct conn {
	struct rdma_event_channel *ec;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_mr *recv_mr, *send_mr, *area_mr;
	uint8_t *recv, *send, *area;
	uint8_t peer_private[64];
	int peer_private_len;
	unsigned int send_used;
};

/* What came back. */
struct reply {
	bool any;
	uint32_t len;
	bool invalidated;
	uint32_t invalidated_rkey;
	const uint8_t *p;
};

static const char *server, *port = "20049", *dir = "export";
static uint32_t next_xid = 0x1000;
static int test_no, failures;
static char why[512];

/* ---- an encoder ---- */

struct enc {
	uint8_t b[65536];
	unsigned int n;
};

static void u32(struct enc *e, uint32_t v)
{
	v = htonl(v);
	memcpy(e->b + e->n, &v, 4);
	e->n += 4;
}

static void u64(struct enc *e, uint64_t v)
{
	u32(e, v >> 32);
	u32(e, v);
}

static void bytes(struct enc *e, const void *p, unsigned int n)
{
	memcpy(e->b + e->n, p, n);
	e->n += n;
}

static void opaque(struct enc *e, const void *p, unsigned int n)
{
	static const uint8_t zero[4];

	u32(e, n);
	bytes(e, p, n);
	bytes(e, zero, -n & 3);
}

static void string(struct enc *e, const char *s)
{
	opaque(e, s, strlen(s));
}

static uint32_t get(const uint8_t *p, unsigned int word)
{
	uint32_t v;

	memcpy(&v, p + 4 * word, 4);
	return ntohl(v);
}

static void hdr(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc)
{
	u32(e, xid);
	u32(e, vers);
	u32(e, credits);
	u32(e, proc);
}

static void seg(struct enc *e, uint32_t handle, uint32_t len, uint64_t off)
{
	u32(e, handle);
	u32(e, len);
	u64(e, off);
}

static void rseg(struct enc *e, uint32_t pos, uint32_t handle, uint32_t len, uint64_t off)
{
	u32(e, 1);
	u32(e, pos);
	seg(e, handle, len, off);
}

static void lists_none(struct enc *e)
{
	u32(e, 0);
	u32(e, 0);
	u32(e, 0);
}

static void call(struct enc *e, uint32_t xid, uint32_t proc)
{
	u32(e, xid);
	u32(e, 0);
	u32(e, 2);
	u32(e, 100003);
	u32(e, 4);
	u32(e, proc);
	/* AUTH_SYS, root */
	u32(e, 1);
	u32(e, 24);
	u32(e, 0);
	string(e, "pro");
	u32(e, 0);
	u32(e, 0);
	u32(e, 0);
	u32(e, 0);
	u32(e, 0);
}

static void compound(struct enc *e, uint32_t xid, unsigned int ops)
{
	call(e, xid, 1);
	string(e, "");
	u32(e, 0);
	u32(e, ops + 2);
	u32(e, PUTROOTFH);
	u32(e, LOOKUP);
	string(e, dir);
}

static void op_lookup(struct enc *e, const char *name)
{
	u32(e, LOOKUP);
	string(e, name);
}

static void anonymous(struct enc *e)
{
	u64(e, 0);
	u64(e, 0);
}

static void op_read(struct enc *e, uint64_t off, uint32_t count)
{
	u32(e, READ);
	anonymous(e);
	u64(e, off);
	u32(e, count);
}

/* All of a WRITE but the data's octets; returns where they belong. */
static unsigned int op_write(struct enc *e, uint64_t off, uint32_t count)
{
	u32(e, WRITE);
	anonymous(e);
	u64(e, off);
	u32(e, 2);
	u32(e, count);
	return e->n;
}

/* ---- a connection ---- */

static bool fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return false;
}

static bool event(struct conn *c, enum rdma_cm_event_type want, int ms)
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

static void post_recv(struct conn *c, unsigned int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->recv + i * RECV_SIZE,
		.length = RECV_SIZE,
		.lkey = c->recv_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	ibv_post_recv(c->id->qp, &wr, &bad);
}

static struct conn *conn_start(const void *priv, int priv_len, int depth)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *sin = (void *)&ss;
	struct sockaddr_in6 *sin6 = (void *)&ss;
	struct ibv_qp_init_attr attr = { 0 };
	struct rdma_conn_param param = { 0 };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	unsigned int i;

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
	if (!c->pd || !c->scq || !c->rcq || rdma_create_qp(c->id, c->pd, &attr)) {
		fail("resources: %s", strerror(errno));
		return NULL;
	}
	c->recv = aligned_alloc(4096, RECVS * RECV_SIZE);
	c->send = aligned_alloc(4096, 65536);
	c->area = aligned_alloc(4096, AREA);
	memset(c->area, 0xee, AREA);
	c->recv_mr = ibv_reg_mr(c->pd, c->recv, RECVS * RECV_SIZE, IBV_ACCESS_LOCAL_WRITE);
	c->send_mr = ibv_reg_mr(c->pd, c->send, 65536, 0);
	c->area_mr = ibv_reg_mr(c->pd, c->area, AREA, access);
	if (!c->recv_mr || !c->send_mr || !c->area_mr) {
		fail("ibv_reg_mr: %s", strerror(errno));
		return NULL;
	}
	for (i = 0; i < RECVS; i++)
		post_recv(c, i);
	param.private_data = priv;
	param.private_data_len = priv_len;
	param.responder_resources = depth;
	param.initiator_depth = 0;
	param.retry_count = 6;
	param.rnr_retry_count = 0;
	if (rdma_connect(c->id, &param)) {
		fail("rdma_connect: %s", strerror(errno));
		return NULL;
	}
	return c;
}

static struct conn *conn_open(const void *priv, int priv_len, int depth)
{
	struct conn *c = conn_start(priv, priv_len, depth);

	return c && event(c, RDMA_CM_EVENT_ESTABLISHED, 5000) ? c : NULL;
}

static void conn_close(struct conn *c)
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

static bool wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
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

static bool post_msg(struct conn *c, const struct enc *e)
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

static bool send_msg(struct conn *c, const struct enc *e)
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

static bool get_reply(struct conn *c, struct reply *r, int ms)
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

static bool exchange(struct conn *c, const struct enc *e, struct reply *r)
{
	if (!send_msg(c, e) || !get_reply(c, r, 5000))
		return false;
	return r->any ? true : fail("no answer");
}

/* ---- what is expected ---- */

static bool is_error(const struct reply *r, uint32_t xid, uint32_t err)
{
	if (r->len < 20 || get(r->p, 0) != xid || get(r->p, 3) != ERROR || get(r->p, 4) != err)
		return fail("%u octets, xid %x, proc %u, word 4 %u; wanted xid %x, RDMA_ERROR, %u", r->len,
			    get(r->p, 0), get(r->p, 3), get(r->p, 4), xid, err);
	return true;
}

/* Returns the offset of the RPC message in an RDMA_MSG without Read list; 0 for NOMSG. */
static bool body_at(const struct reply *r, uint32_t xid, unsigned int *at)
{
	unsigned int w = 4, n;

	if (r->len < 28 || get(r->p, 0) != xid || get(r->p, 1) != 1)
		return fail("%u octets, xid %x (wanted %x), vers %u", r->len, get(r->p, 0), xid,
			    get(r->p, 1));
	if (get(r->p, 3) == ERROR)
		return fail("RDMA_ERROR %u", get(r->p, 4));
	if (get(r->p, w++))
		return fail("Read list in a Reply");
	while (get(r->p, w++)) {
		n = get(r->p, w++);
		w += 4 * n;
	}
	if (get(r->p, w++)) {
		n = get(r->p, w++);
		w += 4 * n;
	}
	*at = get(r->p, 3) == NOMSG ? 0 : 4 * w;
	return true;
}

/* The status of the compound whose Reply starts at @p, and where its results start. */
static bool compound_ok(const uint8_t *p, unsigned int ops)
{
	if (get(p, 1) != 1 || get(p, 2) || get(p, 5))
		return fail("RPC: msg_type %u, stat %u, accept_stat %u", get(p, 1), get(p, 2), get(p, 5));
	if (get(p, 6))
		return fail("NFS4 status %u", get(p, 6));
	if (get(p, 8) != ops + 2)
		return fail("%u results", get(p, 8));
	return true;
}

static bool alive(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int at;

	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	call(&e, xid, 0);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at))
		return false;
	if (get(r.p + at, 1) != 1 || get(r.p + at, 5))
		return fail("NULL: msg_type %u, accept_stat %u", get(r.p + at, 1), get(r.p + at, 5));
	return true;
}

static bool refused(struct conn *c, const struct enc *e, uint32_t xid, uint32_t err)
{
	struct reply r;

	return exchange(c, e, &r) && is_error(&r, xid, err) && alive(c);
}

static bool ignored(struct conn *c, const struct enc *e)
{
	struct reply r;

	if (!send_msg(c, e) || !get_reply(c, &r, 300))
		return false;
	if (r.any)
		return fail("answered: proc %u", get(r.p, 3));
	return alive(c);
}

static const uint8_t private_plain[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3 };
static const uint8_t private_inv[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };
static const uint8_t private_1k[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 0, 0 };

static uint8_t pattern(unsigned int i)
{
	return i * 7 + (i >> 8) * 13 + (i >> 16);
}

static void fill(uint8_t *p, unsigned int from, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		p[i] = pattern(from + i);
}

static bool same(const char *what, const uint8_t *p, unsigned int from, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (p[i] != pattern(from + i))
			return fail("%s: octet %u is %02x, not %02x", what, i, p[i], pattern(from + i));
	return true;
}

static uint64_t at_area(struct conn *c, unsigned int off)
{
	return (uintptr_t)c->area + off;
}

/* ---- the tests ---- */

static bool t_null(struct conn *c)
{
	return alive(c);
}

static bool t_private(struct conn *c)
{
	static const uint8_t id[4] = { 0xf6, 0xab, 0x0e, 0x18 };

	if (c->peer_private_len < 8 || memcmp(c->peer_private, id, 4) || c->peer_private[4] != 1)
		return fail("no message (%d octets)", c->peer_private_len);
	return c->peer_private[5] == 1 ? true : fail("flags %x", c->peer_private[5]);
}

static bool t_credits(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	call(&e, xid, 0);
	if (!exchange(c, &e, &r))
		return false;
	return get(r.p, 2) ? true : fail("no credits granted");
}

static bool t_version(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;

	hdr(&e, xid, 2, 32, MSG);
	lists_none(&e);
	call(&e, xid, 0);
	if (!exchange(c, &e, &r) || !is_error(&r, xid, ERR_VERS))
		return false;
	if (get(r.p, 1) != 2 || get(r.p, 5) != 1 || get(r.p, 6) != 1)
		return fail("vers %u, range %u..%u", get(r.p, 1), get(r.p, 5), get(r.p, 6));
	return alive(c);
}

static bool t_short(struct conn *c)
{
	unsigned int n;

	for (n = 0; n < 28; n += 4) {
		struct enc e = { .n = 0 };

		hdr(&e, next_xid++, 1, 32, MSG);
		lists_none(&e);
		e.n = n;
		/* A length of zero cannot be told from no message by some providers. */
		if (n && !ignored(c, &e))
			return false;
	}
	return true;
}

static bool t_procs(struct conn *c)
{
	struct enc e = { .n = 0 };
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, MSGP);
	u32(&e, 8);
	u32(&e, 0);
	lists_none(&e);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	e.n = 0;
	xid = next_xid++;
	hdr(&e, xid, 1, 32, 77);
	lists_none(&e);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	e.n = 0;
	hdr(&e, next_xid++, 1, 32, DONE);
	lists_none(&e);
	if (!ignored(c, &e))
		return false;
	e.n = 0;
	hdr(&e, next_xid++, 1, 32, ERROR);
	u32(&e, ERR_CHUNK);
	lists_none(&e);
	return ignored(c, &e);
}

static bool t_nomsg_empty(struct conn *c)
{
	struct enc e = { .n = 0 };
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, NOMSG);
	lists_none(&e);
	call(&e, xid, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_xid(struct conn *c)
{
	struct enc e = { .n = 0 };
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	call(&e, xid ^ 0x80000000, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_bad_lists(struct conn *c)
{
	static const uint32_t counts[] = { 0x7fffffff, 0x10000000, 0xffffffff, 300 };
	struct enc e = { .n = 0 };
	unsigned int i;
	uint32_t xid;

	/* Discriminators that are no booleans, in each list. */
	for (i = 0; i < 3; i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		u32(&e, i == 0 ? 5 : 0);
		u32(&e, i == 1 ? 5 : 0);
		u32(&e, i == 2 ? 5 : 0);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	/* Counts beyond the message, in the Write list and in the Reply chunk. */
	for (i = 0; i < 8; i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		u32(&e, 0);
		if (i & 1)
			u32(&e, 0);
		u32(&e, 1);
		u32(&e, counts[i / 2]);
		seg(&e, c->area_mr->rkey, 4096, at_area(c, 0));
		lists_none(&e);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	return true;
}

static bool t_positions(struct conn *c)
{
	static const uint32_t bad[] = { 3, 0xfffffffc, 4096, 65536, 0x7ffffffc };
	struct enc e = { .n = 0 };
	unsigned int i;
	uint32_t xid;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		rseg(&e, bad[i], c->area_mr->rkey, 4096, at_area(c, 0));
		lists_none(&e);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	/* Overlapping chunks. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	rseg(&e, 40, c->area_mr->rkey, 4096, at_area(c, 0));
	rseg(&e, 44, c->area_mr->rkey, 4096, at_area(c, 0));
	lists_none(&e);
	call(&e, xid, 0);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	/* A Position-zero chunk in a message that has its payload inline. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	rseg(&e, 0, c->area_mr->rkey, 64, at_area(c, 0));
	lists_none(&e);
	call(&e, xid, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_read_lengths(struct conn *c)
{
	static const uint32_t bad[] = { 0xffffffff, 0x7fffffff, 0xfffff000, 64 << 20 };
	struct enc e = { .n = 0 };
	unsigned int i, k;
	uint32_t xid;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, NOMSG);
		rseg(&e, 0, c->area_mr->rkey, bad[i], at_area(c, 0));
		lists_none(&e);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		rseg(&e, 40, c->area_mr->rkey, 1, at_area(c, 0));
		rseg(&e, 40, c->area_mr->rkey, bad[i], at_area(c, 0));
		lists_none(&e);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	/* More chunks than anybody pulls. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	for (k = 0; k < 40; k++)
		rseg(&e, 4 + 8 * k, c->area_mr->rkey, 4, at_area(c, 0));
	lists_none(&e);
	call(&e, xid, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_file(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int at;

	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	compound(&e, xid, 1);
	op_lookup(&e, "probe");
	return exchange(c, &e, &r) && body_at(&r, xid, &at) && compound_ok(r.p + at, 1);
}

/* WRITEs by Read chunk of @n segments, some of them empty; or by a Position-zero chunk. */
static bool write_item(struct conn *c, unsigned int off, unsigned int count, unsigned int n, bool zero,
		       bool pzrc, bool both)
{
	struct enc e = { .n = 0 }, m = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int i, pos, at, each = count / n, left;

	fill(c->area, off, count);
	compound(&m, xid, 2);
	op_lookup(&m, "probe");
	pos = op_write(&m, off, count);
	if (pzrc && !both)
		bytes(&m, c->area, count);
	while (pzrc && !both && m.n & 3)
		bytes(&m, "", 1);
	if (pzrc)
		memcpy(c->area + AREA / 2, m.b, m.n);
	hdr(&e, xid, 1, 32, pzrc ? NOMSG : MSG);
	if (pzrc) {
		left = m.n;
		for (i = 0; i < n; i++) {
			unsigned int len = i == n - 1 ? left : (m.n / n) & ~3;

			if (zero)
				rseg(&e, 0, c->area_mr->rkey, 0, 0);
			rseg(&e, 0, c->area_mr->rkey, len, at_area(c, AREA / 2 + m.n - left));
			left -= len;
		}
	}
	if (!pzrc || both) {
		left = count;
		for (i = 0; i < n; i++) {
			unsigned int len = i == n - 1 ? left : each;

			if (zero)
				rseg(&e, pos, 0x12345678, 0, 0);
			rseg(&e, pos, c->area_mr->rkey, len, at_area(c, count - left));
			left -= len;
		}
	}
	lists_none(&e);
	if (!pzrc)
		bytes(&e, m.b, m.n);
	return exchange(c, &e, &r) && body_at(&r, xid, &at) && compound_ok(r.p + at, 2);
}

/* READs through a Write chunk of @n segments. */
static bool read_item(struct conn *c, unsigned int off, unsigned int count, unsigned int n, bool zero,
		      unsigned int extra)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++, sum = 0;
	unsigned int i, at, left = count + extra, each = left / n, w;

	memset(c->area, 0xee, count + extra + 64);
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, zero ? 2 * n : n);
	for (i = 0; i < n; i++) {
		unsigned int len = i == n - 1 ? left : each;

		if (zero)
			seg(&e, 0x12345678, 0, 0);
		seg(&e, c->area_mr->rkey, len, at_area(c, count + extra - left));
		left -= len;
	}
	/* A second chunk, for which there is no result. */
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 4096, at_area(c, AREA / 2));
	u32(&e, 0);
	u32(&e, 0);
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, off, count);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at) || !compound_ok(r.p + at, 2))
		return false;
	/* The returned chunks. */
	if (get(r.p, 5) != 1 || get(r.p, 6) != (zero ? 2 * n : n))
		return fail("chunk of %u segments returned", get(r.p, 6));
	for (i = 0, w = 7; i < get(r.p, 6); i++, w += 4)
		sum += get(r.p, w + 1);
	if (sum != count)
		return fail("%u octets said to be written, not %u", sum, count);
	if (get(r.p, w) != 1 || get(r.p, w + 1) != 1 || get(r.p, w + 3))
		return fail("unused chunk returned as %u %u .. %u", get(r.p, w), get(r.p, w + 1),
			    get(r.p, w + 3));
	for (i = 0; i < 64; i++)
		if (c->area[count + i] != 0xee)
			return fail("roundup or more was written");
	return same("data", c->area, off, count);
}

static bool t_write_read(struct conn *c)
{
	static const unsigned int sizes[] = { 1, 3, 4, 5, 511, 4095, 4096, 4097, 65535, 65536, 100001 };
	unsigned int i, n;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (n = 1; n <= 5; n += 2) {
			if (n > sizes[i])
				continue;
			if (!write_item(c, 0, sizes[i], n, n == 3, false, false))
				return false;
			if (!read_item(c, 0, sizes[i], n, n == 3, i * 100))
				return false;
		}
	}
	return true;
}

static bool t_pzrc(struct conn *c)
{
	static const unsigned int sizes[] = { 1, 4, 100, 4000, 4096, 30001 };
	unsigned int i, n;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (n = 1; n <= 4; n++) {
			if (!write_item(c, 7, sizes[i], n, n == 2, true, false))
				return fail("PZRC of %u octets in %u: %s", sizes[i], n, strdup(why));
			if (!read_item(c, 7, sizes[i], 1, false, 0))
				return false;
			if (n > sizes[i])
				continue;
			if (!write_item(c, 9, sizes[i], n, n == 2, true, true))
				return fail("PZRC and item of %u octets in %u: %s", sizes[i], n, strdup(why));
			if (!read_item(c, 9, sizes[i], 1, false, 0))
				return false;
		}
	return true;
}

/* Several WRITEs in one Call, each with its chunk; the list backwards as well. */
static bool t_several(struct conn *c)
{
	static const unsigned int len[3] = { 1000, 4097, 3 };
	int backwards;

	for (backwards = 0; backwards < 2; backwards++) {
		struct enc e = { .n = 0 }, m = { .n = 0 };
		unsigned int pos[3], at, i, off[3] = { 0, 1000, 5097 }, stood = 0;
		struct reply r;
		uint32_t xid = next_xid++;

		compound(&m, xid, 5);
		op_lookup(&m, "probe");
		for (i = 0; i < 3; i++) {
			fill(c->area + i * 65536, off[i], len[i]);
			pos[i] = op_write(&m, off[i], len[i]) + stood;
			stood += (len[i] + 3) & ~3;
		}
		u32(&m, GETFH);
		hdr(&e, xid, 1, 32, MSG);
		for (i = 0; i < 3; i++) {
			unsigned int k = backwards ? 2 - i : i;

			rseg(&e, pos[k], c->area_mr->rkey, len[k], at_area(c, k * 65536));
		}
		lists_none(&e);
		bytes(&e, m.b, m.n);
		if (!exchange(c, &e, &r) || !body_at(&r, xid, &at) || !compound_ok(r.p + at, 5))
			return fail("backwards %d: %s", backwards, strdup(why));
		if (!read_item(c, 0, 5100, 2, false, 0))
			return false;
	}
	return true;
}

static bool t_two_results(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int at;

	if (!write_item(c, 0, 9000, 1, false, false, false))
		return false;
	memset(c->area, 0xee, AREA);
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 8192, at_area(c, 0));
	u32(&e, 1);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 2);
	seg(&e, c->area_mr->rkey, 100, at_area(c, 65536));
	seg(&e, c->area_mr->rkey, 8192, at_area(c, 65636));
	u32(&e, 0);
	u32(&e, 0);
	compound(&e, xid, 4);
	op_lookup(&e, "probe");
	op_read(&e, 0, 5001);
	op_read(&e, 17, 100);
	op_read(&e, 3, 2000);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at) || !compound_ok(r.p + at, 4))
		return false;
	/* first chunk 5001; empty chunk returned empty; third 100 + 1900 */
	if (get(r.p, 8) != 5001 || get(r.p, 11) != 1 || get(r.p, 12) != 0 || get(r.p, 14) != 2 ||
	    get(r.p, 16) != 100 || get(r.p, 20) != 1900)
		return fail("returned %u, %u %u, %u: %u %u", get(r.p, 8), get(r.p, 11), get(r.p, 12),
			    get(r.p, 14), get(r.p, 16), get(r.p, 20));
	/* Where NFSD has read the other data to is another matter. */
	return same("first", c->area, 0, 5001);
}

static bool t_too_small(struct conn *c)
{
	struct enc e = { .n = 0 };
	uint32_t xid = next_xid++;
	unsigned int i;

	memset(c->area, 0xee, AREA);
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 2);
	seg(&e, c->area_mr->rkey, 1024, at_area(c, 0));
	seg(&e, c->area_mr->rkey, 1024, at_area(c, 1024));
	u32(&e, 0);
	u32(&e, 0);
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, 8192);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	for (i = 0; i < AREA; i++)
		if (c->area[i] != 0xee)
			return fail("something was written");
	/* A Reply chunk that is too small, too. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 1000, at_area(c, 0));
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, 8192);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	/* And none at all. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, 8192);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_reply_chunk(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid;
	unsigned int at, n, i, sum;

	for (n = 1; n <= 4; n++) {
		xid = next_xid++;
		memset(c->area, 0xee, 65536);
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		u32(&e, 0);
		u32(&e, 0);
		u32(&e, 1);
		u32(&e, n);
		for (i = 0; i < n; i++)
			seg(&e, c->area_mr->rkey, 16384 / n, at_area(c, i * (16384 / n)));
		compound(&e, xid, 2);
		op_lookup(&e, "probe");
		op_read(&e, 0, 8001);
		if (!exchange(c, &e, &r) || !body_at(&r, xid, &at))
			return false;
		if (at || get(r.p, 3) != NOMSG)
			return fail("not a Long Reply");
		for (i = 0, sum = 0; i < n; i++)
			sum += get(r.p, 9 + 4 * i);
		if (!compound_ok(c->area, 2))
			return false;
		if (sum < 8001 || sum > 8300 || sum & 3)
			return fail("%u octets", sum);
		if (!same("data", c->area + sum - 8004, 0, 8001))
			return false;
	}
	/* A short Reply although there is a chunk. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 16384, at_area(c, 0));
	call(&e, xid, 0);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at))
		return false;
	if (!at)
		return true;	/* allowed, if wasteful */
	return get(r.p, 9) ? fail("%u octets written for a short Reply", get(r.p, 9)) : true;
}

static bool t_both(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int at;

	/* Data to the Write chunk; the directory, too long to be sent, to the Reply chunk. */
	memset(c->area, 0xee, AREA);
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 8192, at_area(c, 0));
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 65536, at_area(c, 65536));
	compound(&e, xid, 5);
	op_lookup(&e, "probe");
	op_read(&e, 0, 7001);
	u32(&e, PUTROOTFH);
	op_lookup(&e, dir);
	u32(&e, READDIR);
	u64(&e, 0);
	u64(&e, 0);
	u32(&e, 32768);
	u32(&e, 32768);
	u32(&e, 1);
	u32(&e, 0x18);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at))
		return false;
	if (at)
		return fail("the directory is too short for this test");
	if (get(r.p, 8) != 7001)
		return fail("%u octets in the Write chunk", get(r.p, 8));
	return compound_ok(c->area + 65536, 5) && same("data", c->area, 0, 7001);
}

static bool t_bad_handle(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int pos;

	{
		struct enc m = { .n = 0 };

		compound(&m, xid, 2);
		op_lookup(&m, "probe");
		pos = op_write(&m, 0, 4096);
		hdr(&e, xid, 1, 32, MSG);
		rseg(&e, pos, c->area_mr->rkey ^ 0x5a00, 4096, at_area(c, 0));
		lists_none(&e);
		bytes(&e, m.b, m.n);
	}
	if (!send_msg(c, &e))
		return false;
	if (!event(c, RDMA_CM_EVENT_DISCONNECTED, 5000) && !strstr(why, "no event"))
		return false;
	/* Either end may have noticed first; no answer may come. */
	if (get_reply(c, &r, 200) && r.any)
		return fail("answered");
	return true;
}

static bool t_threshold(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int at;

	/* This connection told a Receive size of 1024. */
	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, 1500);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 4096, at_area(c, 0));
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, 1500);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at))
		return false;
	return at ? fail("sent inline: %u octets", r.len) : true;
}

static bool t_flood(struct conn *c)
{
	struct enc e = { .n = 0 };
	unsigned int i, round, at;
	struct reply r;
	struct ibv_wc wc;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 32; i++) {
			uint32_t xid = next_xid++;

			e.n = 0;
			hdr(&e, xid, 1, 32, MSG);
			lists_none(&e);
			call(&e, xid, 0);
			if (!post_msg(c, &e))
				return false;
		}
		for (i = 0; i < 32; i++) {
			if (!get_reply(c, &r, 5000))
				return false;
			if (!r.any)
				return fail("round %u: %u of 32 answered", round, i);
			if (!body_at(&r, get(r.p, 0), &at))
				return false;
			if (!wait_cq(c->scq, &wc, 1000) || wc.status)
				return fail("a Send failed");
		}
	}
	return true;
}

static bool t_invalidate(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;

	/* The handle is that of a plain registration: what is asked is only whether it is named. */
	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 8192, at_area(c, 0));
	u32(&e, 0);
	u32(&e, 0);
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, 100);
	if (!send_msg(c, &e))
		return false;
	if (!get_reply(c, &r, 3000))
		/* Some providers refuse to invalidate a plain registration, which shows as well. */
		return strstr(why, "Receive:") ? true : false;
	if (!r.any)
		return fail("no answer");
	return r.invalidated ? true : fail("plain Send");
}

static bool t_no_invalidate(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, MSG);
	u32(&e, 0);
	u32(&e, 1);
	u32(&e, 1);
	seg(&e, c->area_mr->rkey, 8192, at_area(c, 0));
	u32(&e, 0);
	u32(&e, 0);
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, 100);
	if (!exchange(c, &e, &r))
		return false;
	return r.invalidated ? fail("invalidated although not asked to") : true;
}

static bool t_no_reads(struct conn *c)
{
	struct enc e = { .n = 0 }, m = { .n = 0 };
	uint32_t xid = next_xid++;
	unsigned int pos;

	/* This connection answers no RDMA Read. */
	compound(&m, xid, 2);
	op_lookup(&m, "probe");
	pos = op_write(&m, 0, 4096);
	hdr(&e, xid, 1, 32, MSG);
	rseg(&e, pos, c->area_mr->rkey, 4096, at_area(c, 0));
	lists_none(&e);
	bytes(&e, m.b, m.n);
	return refused(c, &e, xid, ERR_CHUNK);
}

/* Leaves while the server reads from here, writes to here and sends to here. */
static bool t_leave(struct conn *unused)
{
	unsigned int round, i;

	(void)unused;
	for (round = 0; round < 30; round++) {
		struct conn *c = conn_open(private_plain, 8, 16);

		if (!c)
			return false;
		for (i = 0; i < 24; i++) {
			struct enc e = { .n = 0 }, m = { .n = 0 };
			uint32_t xid = next_xid++;
			unsigned int pos;

			compound(&m, xid, 2);
			op_lookup(&m, "probe");
			if (i & 1) {
				hdr(&e, xid, 1, 32, MSG);
				u32(&e, 0);
				u32(&e, 1);
				u32(&e, 1);
				seg(&e, c->area_mr->rkey, 262144, at_area(c, 0));
				u32(&e, 0);
				u32(&e, 0);
				op_read(&m, 0, 262144);
			} else {
				pos = op_write(&m, 0, 262144);
				hdr(&e, xid, 1, 32, MSG);
				rseg(&e, pos, c->area_mr->rkey, 262144, at_area(c, 0));
				lists_none(&e);
			}
			bytes(&e, m.b, m.n);
			if (!post_msg(c, &e))
				return false;
		}
		usleep(round * 3000);
		conn_close(c);
	}
	return true;
}

/* Asks for connections and is gone before they are accepted. */
static bool t_shy(struct conn *unused)
{
	unsigned int i;

	(void)unused;
	for (i = 0; i < 60; i++) {
		struct conn *c = conn_start(private_plain, 8, i & 1 ? 16 : 0);

		if (!c)
			return false;
		usleep(i * 500);
		conn_close(c);
	}
	return true;
}

static void run(const char *name, bool (*test)(struct conn *), const void *priv, int len, int depth)
{
	struct conn *c;
	bool ok;

	strcpy(why, "");
	c = conn_open(priv, len, depth);
	ok = c && test(c);
	printf("%sok %d - %s\n", ok ? "" : "not ", ++test_no, name);
	if (!ok) {
		printf("# %s\n", why);
		failures++;
	}
	fflush(stdout);
	conn_close(c);
}

#define RUN(name, test)	run(name, test, private_plain, 8, 16)

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "Usage: %s SERVER [PORT [DIRECTORY]]\n", argv[0]);
		return 2;
	}
	server = argv[1];
	if (argc > 2)
		port = argv[2];
	if (argc > 3)
		dir = argv[3];
	printf("KTAP version 1\n1..29\n");
	RUN("a Call without arguments", t_null);
	run("without private data", t_null, NULL, 0, 16);
	RUN("private data of the server", t_private);
	RUN("credits", t_credits);
	RUN("another version", t_version);
	RUN("too short to be a header", t_short);
	RUN("procedures that a server does not serve", t_procs);
	RUN("RDMA_NOMSG without a chunk", t_nomsg_empty);
	RUN("different XIDs in header and payload", t_xid);
	RUN("malformed lists", t_bad_lists);
	RUN("bad Positions", t_positions);
	RUN("bad Read lengths", t_read_lengths);
	RUN("the file to test with", t_file);
	RUN("WRITE by Read chunk, READ by Write chunk", t_write_read);
	RUN("Position-zero chunks", t_pzrc);
	RUN("several Read chunks", t_several);
	RUN("several Write chunks, one of them empty", t_two_results);
	RUN("chunks that are too small", t_too_small);
	RUN("Reply chunks", t_reply_chunk);
	RUN("Write chunk and Reply chunk", t_both);
	run("a peer with small Receives", t_threshold, private_1k, 8, 16);
	RUN("many Calls at a time", t_flood);
	run("Remote Invalidation if both ends want it", t_invalidate, private_inv, 8, 16);
	RUN("no Remote Invalidation otherwise", t_no_invalidate);
	run("a peer that answers no RDMA Read", t_no_reads, private_plain, 8, 0);
	RUN("a handle that is not one", t_bad_handle);
	RUN("peers that leave in the middle", t_leave);
	RUN("peers that leave too early", t_shy);
	RUN("and all is well", t_null);
	printf("# %d failed\n", failures);
	return !!failures;
}
