// SPDX-License-Identifier: GPL-2.0
/*
 * A client's private data, and the message sizes that follow from it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "counters.h"
#include "expect.h"
#include "file_io.h"
#include "group.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

/* Another version, another format identifier, and a truncated message: all to be ignored. */
static const struct params params_version_2 = {
	.private_data = { PRIVATE_ID, 2, 1, 3, 3 }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 1024,
};

static const struct params params_other_id = {
	.private_data = { 0xf6, 0xab, 0x0e, 0x19, 1, 1, 3, 3 }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 1024,
};

static const struct params params_truncated = {
	.private_data = { PRIVATE_ID, 1, 1, 3 }, .private_len = PRIVATE_MSG_LEN - 1,
	.responder = 16, .recv_size = 1024,
};

#define MEDIUM_READ	1500	/* its Reply is longer than 1024 bytes, and shorter than 2048 */

static bool t_longer(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e;

	if (peer_send_size(c) < 2048)
		return skip("the server's Send Size is below 2048");
	enc_inline_read_call(&e, xid, MEDIUM_READ);
	return compound_succeeds(c, &e, 2);
}

static bool t_not_longer(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e;

	enc_inline_read_call(&e, xid, MEDIUM_READ);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool read_without_invalidation(struct conn *c)
{
	const struct segment data = area_segment(c, 0, 8192);
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int at;
	struct reply r;

	memset(c->area, 0xee, 100);
	enc_read_call(&e, xid, &data, 100);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 2))
		return false;
	return r.invalidated ? fail("handle invalidated without consent") :
		check_pattern("data", c->area, 0, 100);
}

/* siw does not report an invalidation. The second READ through the same handle would fail. */
static bool t_plain_sends(struct conn *c)
{
	return read_without_invalidation(c) && read_without_invalidation(c);
}

/* A WRITE with inline data, in a Send of this length. */
static bool write_in_send_of(struct conn *c, unsigned int len)
{
	struct enc e;
	unsigned int n;

	enc_compound_call(&e, new_xid(), 2);
	enc_lookup(&e, "probe");
	n = len - enc_write(&e, 0, 0);
	put_word(&e, e.len / 4 - 1, n);
	fill_pattern(e.buf + e.len, 0, n);
	e.len += n;
	return compound_succeeds(c, &e, 2) && alive(c);
}

static bool t_1024(struct conn *c)
{
	return write_in_send_of(c, 1024);
}

static bool t_agreed(struct conn *c)
{
	return write_in_send_of(c, peer_recv_size(c) < 4096 ? peer_recv_size(c) : 4096);
}

static const struct params params_16k_sends = {
	.private_data = { PRIVATE_MSG(0, 15, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 16, .recv_size = 4096,
};

enum order { INLINE_FIRST, INLINE_LAST };

/* Two WRITEs, of more than a page of inline data, and of a Read chunk. */
static bool write_inline_and_chunk(struct conn *c, enum order order)
{
	enum { INLINE_LEN = 8000, CHUNK_LEN = 5000 };
	const unsigned int chunk_at = order == INLINE_FIRST ? INLINE_LEN : 0;
	const unsigned int inline_at = order == INLINE_FIRST ? 0 : CHUNK_LEN;
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int position = 0;

	new_pattern();
	fill_pattern(c->area, chunk_at, CHUNK_LEN);
	enc_compound(&rpc, xid, 3);
	enc_lookup(&rpc, "probe");
	if (order == INLINE_LAST)
		position = enc_write(&rpc, chunk_at, CHUNK_LEN);
	enc_write(&rpc, inline_at, INLINE_LEN);
	fill_pattern(rpc.buf + rpc.len, inline_at, INLINE_LEN);
	rpc.len += INLINE_LEN;
	if (order == INLINE_FIRST)
		position = enc_write(&rpc, chunk_at, CHUNK_LEN);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, position, c->area_mr->rkey, CHUNK_LEN, area_addr(c, 0));
	enc_no_chunks(&e);
	enc_bytes(&e, rpc.buf, rpc.len);
	return compound_succeeds(c, &e, 3) && read_item(c, 0, INLINE_LEN + CHUNK_LEN);
}

/* The longest head of a Call that SUNRPC has got since check_rq_head.ko was loaded. */
static long longest_head(void)
{
	return number_from(fopen("/sys/module/check_rq_head/parameters/max_len", "r"), fclose);
}

/* SUNRPC relies on heads that fit in a page, because it copies heads to a page. */
static bool heads_fit(struct conn *c)
{
	bool ok = write_inline_and_chunk(c, INLINE_FIRST) && write_inline_and_chunk(c, INLINE_LAST);
	const long longest = longest_head();

	if (ok && longest <= 0)
		return fail("no head was measured");
	return ok && longest > 4096 ? fail("SUNRPC got a head of %ld bytes", longest) : ok;
}

/* The server's Receives are longer than a page. */
static bool t_long_call(struct conn *unused)
{
	const long before = server_value("max_req_size");
	struct conn *c;
	bool ok;

	(void)unused;
	if (before < 0 || system("insmod /probe/check_rq_head.ko"))
		return skip("the server is on another machine");
	c = set_server_value("max_req_size", 16384) ? conn_open(&params_16k_sends) : NULL;
	ok = c && (peer_recv_size(c) == 16384 || fail("Receives of %u bytes", peer_recv_size(c))) &&
	     heads_fit(c);
	conn_close(c);
	return set_server_value("max_req_size", before) && !system("rmmod check_rq_head") && ok;
}

/* A Send that is longer than its Receive ends this connection, and no other. */
static bool t_too_long(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct conn *other;
	struct ibv_wc wc;
	bool ok;

	if (peer_recv_size(c) >= sizeof(e.buf))
		return skip("the server's Receives are too long");
	enc_call_hdr(&e, new_xid(), RDMA_MSG);
	memset(e.buf + e.len, 0, sizeof(e.buf) - e.len);
	e.len = peer_recv_size(c) + 4;
	if (!post_msg(c, &e) || !wait_cq(c->scq, &wc, PATIENCE_MS))
		return fail("the Send did not complete");
	/* On iWARP a Send completes before the peer can reject it. */
	if (!wc.status && !is_iwarp(c))
		return fail("the Send was received");
	/*
	 * This queue pair is in the error state. The server has to end the connection, too: with a REJ
	 * if its CM has not yet handled the RTU.
	 */
	if (!wait_disconnected(c, PATIENCE_MS))
		return fail("still connected");
	other = conn_open(&params_default);
	ok = other && alive(other);
	conn_close(other);
	return ok;
}

static bool t_quiet(struct conn *c)
{
	struct reply r;

	if (!alive(c) || !get_reply(c, &r, 3000))
		return false;
	return r.any ? fail("unsolicited message, proc %u", get_word(r.p, HDR_PROC)) : alive(c);
}

static const struct test tests[] = {
	{ "R8166-3.3.2-1", "messages of the agreed length", t_agreed },
	{ "R8166-3.3.3-4 R8166-3.3.3-1", "1024 bytes without private data", t_1024,
	  .params = &params_no_private },
	{ "R8166-3.3.3-5 R8797-5.1-1", "no private data: no longer messages", t_not_longer,
	  .params = &params_no_private },
	{ "R8797-5.1-1 CM0-3.2-1 CM0-4-1", "private data of another version", t_not_longer,
	  .params = &params_version_2 },
	{ "R8797-5.2-2 CM0-4-1", "private data with another format identifier", t_not_longer,
	  .params = &params_other_id },
	{ "R8797-5.2-3 CM0-4-1", "truncated private data", t_not_longer,
	  .params = &params_truncated },
	{ "R8797-5.2-1", "private data behind other data", t_longer, .params = &params_prefixed },
	{ "R8797-4-3", "all Reserved bits set: longer messages", t_longer,
	  .params = &params_reserved_bits },
	{ "R8797-4-3 R8797-4.1-3", "all Reserved bits set: no Remote Invalidation", t_plain_sends,
	  .params = &params_reserved_bits },
	{ "R8797-4.1-3 RI3-3.1-1 RI3-3.1-3", "no Remote Invalidation if not offered",
	  t_plain_sends },
	{ "R8797-4.1-3 RI3-3.1-3", "no Remote Invalidation without private data", t_plain_sends,
	  .params = &params_no_private },
	{ "-", "a Read chunk beside more than a page of inline data", t_long_call },
	{ "R8797-3.1-1 R8166-2.3.2-2", "a Send that is too long", t_too_long },
	{ "R8166-3.3.1-10 R8167-2-2", "no unsolicited messages", t_quiet },
};

const struct group group_agreement = {
	.name = "agreement", .about = "a client with private data of every kind",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
