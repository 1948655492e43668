// SPDX-License-Identifier: GPL-2.0
/*
 * Sends, Receives, RDMA Reads and RDMA Writes on a connection.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "probe.h"
#include "transfer.h"

/*
 * rxe sets the kernel's IB_WC_WITH_INVALIDATE. The same bit is IBV_WC_IP_CSUM_OK in libibverbs,
 * which no Receive of an RC queue pair has.
 */
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

bool wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	const int64_t start = now_ms();

	for (;;) {
		if (ibv_poll_cq(cq, 1, wc) > 0)
			return true;
		if (now_ms() - start >= ms * probe.time_factor)
			return false;
		usleep(100);
	}
}

/* Copies the message into registered memory, and posts it. */
static bool post(struct conn *c, const struct enc *e, enum ibv_wr_opcode opcode, uint32_t handle)
{
	struct ibv_sge sge = { .lkey = c->send_mr->lkey, .length = e->len };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = handle };
	struct ibv_send_wr *bad;

	/* siw's provider takes the handle to invalidate from here. */
	wr.wr.rdma.rkey = handle;
	if (c->send_used + e->len > SEND_SIZE)
		c->send_used = 0;
	memcpy(c->send + c->send_used, e->buf, e->len);
	sge.addr = (uintptr_t)c->send + c->send_used;
	c->send_used += (e->len + 63) & ~63;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		return fail("ibv_post_send: %s", strerror(errno));
	return true;
}

/*
 * Waits for a send completion. Returns early if the connection has ended, because a lost WR may
 * never complete, and the peer's next connect request may be pending: siw drops that after ten
 * seconds.
 */
static bool wait_scq(struct conn *c, struct ibv_wc *wc, int ms)
{
	for (; ms > 0; ms -= 50) {
		if (wait_cq(c->scq, wc, 50))
			return true;
		if (disconnected(c))
			return wait_cq(c->scq, wc, 50);
	}
	return false;
}

bool post_msg(struct conn *c, const struct enc *e)
{
	return post(c, e, IBV_WR_SEND, 0);
}

bool post_invalidating(struct conn *c, const struct enc *e, uint32_t handle)
{
	return post(c, e, IBV_WR_SEND_WITH_INV, handle);
}

/* Waits until one of the posted Sends has completed, which means on RoCE that it was received. */
bool wait_sent(struct conn *c)
{
	struct ibv_wc wc;

	if (!wait_scq(c, &wc, PATIENCE_MS))
		return fail("a Send did not complete");
	if (wc.status)
		return fail("Send: %s", ibv_wc_status_str(wc.status));
	return true;
}

bool send_msg(struct conn *c, const struct enc *e)
{
	return post_msg(c, e) && wait_sent(c);
}

bool send_invalidating(struct conn *c, const struct enc *e, uint32_t handle)
{
	return post_invalidating(c, e, handle) && wait_sent(c);
}

/* Gets the next message, if one arrives within @ms. Fails if it is longer than agreed. */
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
	if (r->len > c->params->recv_size)
		return fail("message of %u bytes, at most %u are allowed", r->len,
			    c->params->recv_size);
	return true;
}

/* Sends a message, and gets the next one. */
bool exchange(struct conn *c, const struct enc *e, struct reply *r)
{
	if (!send_msg(c, e) || !get_reply(c, r, PATIENCE_MS))
		return false;
	return r->any ? true : fail("no Reply");
}

/* The area's part of @len bytes at @at. */
struct segment area_segment(const struct conn *c, unsigned int at, unsigned int len)
{
	return (struct segment) {
		.handle = c->area_mr->rkey, .length = len, .offset = area_addr(c, at),
	};
}

/*
 * RDMA Read or RDMA Write of the peer's segment, to or from @at in the area. Returns the
 * completion status, or -1 if there was no completion.
 */
int rdma(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s, unsigned int at)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->area + at, .length = s->length, .lkey = c->area_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = s->offset, .rkey = s->handle },
	}, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(c->id->qp, &wr, &bad) || !wait_scq(c, &wc, PATIENCE_MS))
		return -1;
	return wc.status;
}

/*
 * Whether an access with this result of rdma() was denied, which ends the connection.
 *
 * The completion need not say IBV_WC_REM_ACCESS_ERR. rxe reports the error to its own kernel
 * first; if that moves the queue pair to the error state at once, no NAK is sent. So the
 * connection may end before the access completes. On iWARP an RDMA Write completes as soon as
 * it is sent.
 */
bool is_denial(struct conn *c, enum ibv_wr_opcode opcode, int status)
{
	if (status == IBV_WC_REM_ACCESS_ERR)
		return true;
	if (status < 0)
		return c->disconnected ? true : fail("the access does not complete");
	/* A successful RDMA Read has delivered the data, on every transport. */
	if (!status && opcode == IBV_WR_RDMA_READ)
		return fail("access not denied: data was read");
	if (!is_iwarp(c) && status != IBV_WC_RETRY_EXC_ERR)
		return fail("access not denied: %s", ibv_wc_status_str(status));
	return wait_disconnected(c, PATIENCE_MS) ? true :
		fail("access not denied: %s, still connected", ibv_wc_status_str(status));
}

/*
 * Checks that the peer's device denies access to @len bytes at @by bytes from the start of the
 * segment.
 */
bool access_denied(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s,
		   int64_t by, unsigned int len)
{
	const struct segment target = {
		.handle = s->handle, .length = len, .offset = s->offset + by,
	};

	return disconnected(c) ? fail("disconnected before the access") :
		is_denial(c, opcode, rdma(c, opcode, &target, 0));
}
