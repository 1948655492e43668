// SPDX-License-Identifier: GPL-2.0
/*
 * What is sent and received on a connection.
 */

#include "probe.h"

/* rxe says it by the kernel's number, which means something else here, but not of a Send. */
#define INVALIDATED	(IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)

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

int64_t now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000LL + at.tv_nsec / 1000000;
}

bool wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	const int64_t start = now_ms();

	for (;;) {
		if (ibv_poll_cq(cq, 1, wc) > 0)
			return true;
		if (now_ms() - start >= ms * patience)
			return false;
		usleep(100);
	}
}

/* Copies the message to where the device may read it. */
static bool post(struct conn *c, const struct enc *e, enum ibv_wr_opcode opcode, uint32_t handle)
{
	struct ibv_sge sge = { .lkey = c->send_mr->lkey, .length = e->n };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = handle };
	struct ibv_send_wr *bad;

	/* Where the library of siw takes it from. */
	wr.wr.rdma.rkey = handle;
	if (c->send_used + e->n > SEND_SIZE)
		c->send_used = 0;
	memcpy(c->send + c->send_used, e->b, e->n);
	sge.addr = (uintptr_t)c->send + c->send_used;
	c->send_used += (e->n + 63) & ~63;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		return fail("ibv_post_send: %s", strerror(errno));
	return true;
}

/*
 * Waits for what was posted, but not for what a connection that has ended has left behind: the
 * next one may be waiting already, and siw has ten seconds for it.
 */
static bool completes(struct conn *c, struct ibv_wc *wc, int ms)
{
	for (; ms > 0; ms -= 50) {
		if (wait_cq(c->scq, wc, 50))
			return true;
		if (gone(c))
			return wait_cq(c->scq, wc, 50);
	}
	return false;
}

/* One of those that were posted has been received. */
bool sent(struct conn *c)
{
	struct ibv_wc wc;

	if (!completes(c, &wc, 3000))
		return fail("the Send did not complete");
	if (wc.status)
		return fail("Send: %s", ibv_wc_status_str(wc.status));
	return true;
}

bool post_msg(struct conn *c, const struct enc *e)
{
	return post(c, e, IBV_WR_SEND, 0);
}

bool send_msg(struct conn *c, const struct enc *e)
{
	return post(c, e, IBV_WR_SEND, 0) && sent(c);
}

bool post_invalidating(struct conn *c, const struct enc *e, uint32_t handle)
{
	return post(c, e, IBV_WR_SEND_WITH_INV, handle);
}

bool send_invalidating(struct conn *c, const struct enc *e, uint32_t handle)
{
	return post_invalidating(c, e, handle) && sent(c);
}

/* What comes within that time, if anything. What is too long is a failure. */
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
	r->invalidated = wc.wc_flags & INVALIDATED;
	r->invalidated_rkey = r->invalidated ? wc.invalidated_rkey : 0;
	memset(copy, 0, sizeof(copy));
	memcpy(copy, c->recv + wc.wr_id * RECV_SIZE, r->len);
	r->p = copy;
	post_recv(c, wc.wr_id);
	if (r->len > c->terms->longest)
		return fail("%u octets, of which %u were allowed", r->len, c->terms->longest);
	return true;
}

bool exchange(struct conn *c, const struct enc *e, struct reply *r)
{
	if (!send_msg(c, e) || !get_reply(c, r, 5000))
		return false;
	return r->any ? true : fail("no answer");
}

/* Reads or writes the other end's memory, from or to @at of the area; the status. */
int rdma(struct conn *c, enum ibv_wr_opcode what, uint32_t handle, uint64_t offset,
	 unsigned int len, unsigned int at)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->area + at, .length = len, .lkey = c->area_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = what, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = offset, .rkey = handle },
	}, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(c->id->qp, &wr, &bad) || !completes(c, &wc, 5000))
		return -1;
	return wc.status;
}

/*
 * Whether the other end's device denies an access, which ends the connection. It says why;
 * but rxe tells the kernel there first, and then nobody else if that ends the queue pair at
 * once: the connection may end before the access does. On iWARP an RDMA Write is over when it
 * has been sent.
 */
bool kept_off(struct conn *c, enum ibv_wr_opcode what, const struct segment *s, int64_t by,
	      unsigned int len)
{
	int status, ms;

	if (gone(c))
		return fail("the connection has ended before");
	status = rdma(c, what, s->handle, s->offset + by, len, 0);
	if (status == IBV_WC_REM_ACCESS_ERR)
		return true;
	if (status < 0)
		return c->left ? true : fail("an access that does not end");
	/* An RDMA Read is over when the data is here, everywhere. */
	if (!status && what == IBV_WR_RDMA_READ)
		return fail("not denied: it was read");
	if (!is_iwarp(c) && status != IBV_WC_RETRY_EXC_ERR)
		return fail("not denied: %s", ibv_wc_status_str(status));
	for (ms = 0; ms < 5000 * patience && !gone(c); ms += 10)
		usleep(10000);
	return c->left ? true : fail("not denied: %s, and the connection was kept",
				     ibv_wc_status_str(status));
}
