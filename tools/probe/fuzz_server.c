// SPDX-License-Identifier: GPL-2.0
/*
 * Mutated Calls to a server.
 *
 * The number of random numbers that a batch draws must not depend on the server: not on when a
 * connection ends, nor on what is exposed on it.
 */

#include <string.h>
#include "counters.h"
#include "expect.h"
#include "file_io.h"
#include "fuzz.h"
#include "mutate.h"
#include "nfs4.h"
#include "probe.h"

#define SYNC_EVERY	16	/* messages, after which the server has to answer a valid Call */

/* An exposed Reply on this connection, and its first handle, or 0. */
static uint32_t exposed_xid, exposed_handle;

/* Mostly small: transfers take most of the time, and are not what is tested. */
static unsigned int random_size(void)
{
	return 1 + random_below(random_below(8) ? 512 : 8192);
}

/* A WRITE with a Read chunk. */
static void enc_random_write(const struct conn *c, struct enc *e, struct enc *rpc, uint32_t xid)
{
	const unsigned int size = random_size();
	unsigned int position, n, i;

	enc_compound(rpc, xid, 2);
	enc_lookup(rpc, "fuzzed");
	position = enc_write(rpc, 0, size);
	n = 1 + random_below(3);
	enc_call_hdr(e, xid, RDMA_MSG);
	for (i = 0; i < n; i++)
		enc_rseg(e, position, c->area_mr->rkey,
			 i < n - 1 ? size / n : size - i * (size / n),
			 area_addr(c, i * (size / n)));
	enc_no_chunks(e);
}

/* A LOOKUP in a Position-zero chunk. */
static void enc_long_call(const struct conn *c, struct enc *e, struct enc *rpc, uint32_t xid)
{
	enc_compound(rpc, xid, 1);
	enc_lookup(rpc, "probe");
	memcpy(c->area + AREA / 2, rpc->buf, rpc->len);
	enc_call_hdr(e, xid, RDMA_NOMSG);
	enc_rseg(e, 0, c->area_mr->rkey, rpc->len, area_addr(c, AREA / 2));
	enc_no_chunks(e);
	rpc->len = 0;
}

/*
 * A READ with a Write chunk, a Reply chunk, both, or none. If the Reply is too long for these, and
 * pulled Replies are agreed, the server exposes it.
 */
static void enc_random_read(const struct conn *c, struct enc *e, struct enc *rpc, uint32_t xid)
{
	enum { WRITE_CHUNK = 1, REPLY_CHUNK = 2 };
	const unsigned int kinds = random_below(4);
	const unsigned int size = kinds || !random_below(8) ? random_size() :
		4096 + random_below(4096);
	unsigned int n = 1 + random_below(3), i;

	enc_call_hdr(e, xid, RDMA_MSG);
	enc_list_end(e);
	if (kinds & WRITE_CHUNK) {
		enc_chunk_head(e, n);
		for (i = 0; i < n; i++)
			enc_seg(e, c->area_mr->rkey, size / n + 1,
				area_addr(c, i * (size / n + 1)));
	}
	enc_list_end(e);
	if (kinds & REPLY_CHUNK) {
		enc_chunk_head(e, n);
		for (i = 0; i < n; i++)
			enc_seg(e, c->area_mr->rkey, 4096, area_addr(c, AREA / 4 + i * 4096));
	} else {
		enc_no_reply_chunk(e);
	}
	enc_compound(rpc, xid, 2);
	enc_lookup(rpc, "probe");
	enc_read(rpc, 0, size);
}

/* An RDMA_DONE for the exposed Reply, or for a recent XID. */
static void enc_random_done(struct enc *e, uint32_t xid)
{
	const uint32_t recent = xid - 1 - random_below(2 * SYNC_EVERY);
	const bool right = random_below(2);

	enc_call_hdr(e, right && exposed_handle ? exposed_xid : recent, RDMA_DONE);
}

/* A valid message, mostly a Call. Returns the length of its header. */
static unsigned int enc_random_message(const struct conn *c, struct enc *e)
{
	const uint32_t xid = new_xid();
	struct enc rpc = { .len = 0 };
	unsigned int hdr_len;

	e->len = 0;
	switch (random_below(6)) {
	case 0:
		enc_call_hdr(e, xid, RDMA_MSG);
		enc_no_chunks(e);
		enc_nfs4_call(&rpc, xid, NFSPROC4_NULL);
		break;
	case 1:
		enc_random_write(c, e, &rpc, xid);
		break;
	case 2:
		enc_long_call(c, e, &rpc, xid);
		break;
	case 3:
		enc_random_done(e, xid);
		break;
	default:
		enc_random_read(c, e, &rpc, xid);
	}
	hdr_len = e->len;
	enc_bytes(e, rpc.buf, rpc.len);
	return hdr_len;
}

/* Remembers an exposed Reply. */
static void note_exposed(const struct reply *r)
{
	if (r->len < HDR_EMPTY_LEN + RSEGMENT_LEN || get_word(r->p, HDR_PROC) != RDMA_NOMSG ||
	    get_word(r->p, HDR_READ_LIST) != 1)
		return;
	exposed_xid = get_word(r->p, HDR_XID);
	exposed_handle = get_word(r->p, RSEG_HANDLE);
	fuzz_stats.exposed_replies++;
}

static const char no_reply[] = "no Reply to a valid Call within 10 s";

static bool next_reply(struct conn *c, struct reply *r)
{
	unsigned int i;

	for (i = 0; i < 100; i++) {
		if (!get_reply(c, r, 100))
			return false;
		if (r->any)
			return true;
		if (disconnected(c))
			return fail("the server has disconnected");
	}
	return fail("%s", no_reply);
}

/* Sends a valid Call, and waits for its Reply. */
static bool synchronize(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e;
	struct reply r;

	enc_null_call(&e, xid);
	if (!send_msg(c, &e))
		return false;
	do {
		if (!next_reply(c, &r))
			return false;
		note_exposed(&r);
	} while (r.len < HDR_EMPTY_LEN || get_word(r.p, HDR_XID) != xid ||
		 get_word(r.p, HDR_PROC) != RDMA_MSG);
	return true;
}

/* The handle to invalidate is mostly that of another Reply than the message is about. */
static bool post_maybe_invalidating(struct conn *c, const struct enc *e, bool invalidate)
{
	return invalidate && exposed_handle ? post_invalidating(c, e, exposed_handle) :
		post_msg(c, e);
}

/* Posts some messages, and waits until they have been sent. */
static bool send_some(struct conn *c)
{
	unsigned int i, n = 0, hdr_len;
	struct enc e;
	bool ok = true, invalidate;

	for (i = 0; i < SYNC_EVERY; i++) {
		hdr_len = enc_random_message(c, &e);
		invalidate = !random_below(256);
		if (random_below(8))
			mutate(c, &e, hdr_len);
		if (!e.len || e.len > peer_recv_size(c))
			continue;
		ok = ok && post_maybe_invalidating(c, &e, invalidate);
		n++;
	}
	while (ok && n--)
		ok = wait_sent(c);
	return ok;
}

/* A server that neither answers a valid Call nor disconnects has failed the batch. */
static bool is_stuck(struct conn *c)
{
	return !disconnected(c) && !strcmp(probe.reason, no_reply);
}

static bool is_sane(void)
{
	struct conn *c = conn_open(&params_default);
	const bool ok = c && alive(c) && read_item(c, 0, 4096);

	conn_close(c);
	return ok && memory_released(SERVER_GAUGE);
}

bool fuzz_server_batch(void)
{
	struct conn *c = NULL;
	unsigned int done;

	for (done = 0; done < BATCH; done += SYNC_EVERY) {
		const struct params *params = random_below(2) ? &params_default : &params_pulled;

		if (!c) {
			c = conn_open(params);
			exposed_handle = 0;
		}
		if (!c)
			return fail("cannot connect again: %s", probe.reason);
		if (send_some(c) && synchronize(c))
			continue;
		if (is_stuck(c)) {
			conn_close(c);
			return false;
		}
		conn_close(c);
		c = NULL;
		fuzz_stats.lost_connections++;
	}
	conn_close(c);
	fuzz_stats.messages += BATCH;
	return is_sane();
}
