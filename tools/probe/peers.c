// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that are small, greedy, gone or shy.
 */

#include "compat.h"

static bool t_bad_handle(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;

	old_enc_write_call(&e, new_xid(), c->area_mr->rkey ^ 0x5a00, area_addr(c, 0), 4096);
	if (!send_msg(c, &e))
		return false;
	/* This end's device does not tell of it: the server has to notice. */
	if (!event(c, RDMA_CM_EVENT_DISCONNECTED, 5000))
		return false;
	return get_reply(c, &r, 200) && r.any ? fail("answered") : true;
}

static bool t_bad_sink(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;

	if (!old_write_item(c, 0, 4096, 1, false, false, false))
		return false;
	old_enc_read_call(&e, new_xid(), c->area_mr->rkey ^ 0x5a00, 4096, area_addr(c, 0), 4096);
	if (!send_msg(c, &e))
		return false;
	if (!event(c, RDMA_CM_EVENT_DISCONNECTED, 5000))
		return false;
	return get_reply(c, &r, 200) && r.any ? fail("answered") : true;
}

static bool t_threshold(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at, w = 6;

	/* This connection told a Receive size of 1024. */
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 1500);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	xid = new_xid();
	e.len = 0;
	old_enc_reply_chunk_hdr(&e, xid, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 1500);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (at)
		return fail("sent inline: %u octets", r.len);
	return chunk_returned(&r, &w, e.buf + 4 * w, READ_REPLY_LEN + 1500) && compound_ok_xid(c->area, xid, 2);
}

/* So many Calls at a time. */
static bool flood(struct conn *c, unsigned int n)
{
	const uint32_t first = probe.next_xid;
	bool seen[RECVS] = { false };
	struct enc e = { .len = 0 };
	struct reply r;
	struct ibv_wc wc;
	unsigned int i, at;

	for (i = 0; i < n; i++) {
		enc_null_call(&e, new_xid());
		if (!post_msg(c, &e))
			return false;
	}
	for (i = 0; i < n; i++) {
		if (!get_reply(c, &r, 5000))
			return false;
		if (!r.any)
			return fail("%u of %u answered", i, n);
		if (!answers_one(&r, first, n, seen, &at))
			return false;
		if (!wait_cq(c->scq, &wc, 1000) || wc.status)
			return fail("a Send failed");
	}
	return true;
}

/* As many as are granted: there is a Receive for each, so that none is sent twice. */
static bool t_flood(struct conn *c)
{
	const unsigned long before = rnr_count(c);
	struct enc e = { .len = 0 };
	unsigned int n, round;
	struct reply r;

	enc_null_call(&e, new_xid());
	if (!exchange(c, &e, &r))
		return false;
	n = get_word(r.p, HDR_CREDITS);
	if (n < 2)
		return n ? skip("it takes one Call at a time, as it may") : fail("no credits");
	for (round = 0; round < 20; round++)
		if (!flood(c, n < RECVS ? n : RECVS) || !no_rnr_since(c, before))
			return false;
	return true;
}

/*
 * A connection that answers no RDMA Read is not taken, or taken for what can be done without:
 * how to come to terms is left to the ends (RFC 8166 Section 3.3.1).
 */
static bool t_no_reads(struct conn *plain)
{
	struct conn *c = conn_start(&params_no_reads);
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	bool taken, ok;

	ok = c && conn_settled(c, &taken);
	if (ok && taken) {
		old_enc_write_call(&e, xid, c->area_mr->rkey, area_addr(c, 0), 4096);
		ok = refused(c, &e, xid, ERR_CHUNK);
	}
	conn_close(c);
	return ok && alive(plain);
}

/* Leaves while the server reads from here, writes to here and sends to here. */
static bool t_leave(struct conn *unused)
{
	unsigned int round, i;

	(void)unused;
	for (round = 0; round < 30; round++) {
		struct conn *c = conn_open(&params_default);

		if (!c)
			return false;
		for (i = 0; i < 24; i++) {
			struct enc e = { .len = 0 };

			if (i & 1)
				old_enc_read_call(&e, new_xid(), c->area_mr->rkey, 262144,
					      area_addr(c, 0), 262144);
			else
				old_enc_write_call(&e, new_xid(), c->area_mr->rkey, area_addr(c, 0),
					       262144);
			if (!post_msg(c, &e))
				return false;
		}
		usleep(round * 3000);
		conn_close(c);
	}
	return true;
}

#define AGAIN	30
#define DROPPED	300	/* more than a connection has Receive buffers */
#define SLOWLY	"insmod /probe/delay_fn.ko function=nfsd4_proc_compound entry=1 delay_ms=100"

/* The same WRITE so many times; returns how often it is answered, or -1. */
static int write_again(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	struct reply r;
	int i;

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_write(&e, 0, 4);
	enc_bytes(&e, "once", 4);
	for (i = 0; i < AGAIN; i++)
		if (!post_msg(c, &e))
			return -1;
	for (i = 0; i < AGAIN; i++)
		if (!wait_sent(c))
			return -1;
	for (i = 0; i <= AGAIN; i++) {
		if (!get_reply(c, &r, i ? 300 : 5000))
			return -1;
		if (!r.any)
			return i;
	}
	return fail("more answers than Calls") - 1;
}

/* What comes again while it is being done is not answered by NFSD, only let go of. */
static bool t_dropped(struct conn *c)
{
	int answers = 0, dropped = 0, round;

	if (system(SLOWLY))
		return skip("NFSD cannot be held up");
	for (round = 0; round < 40 && dropped < DROPPED && answers >= 0; round++) {
		answers = write_again(c);
		if (answers > 0)
			dropped += AGAIN - answers;
	}
	if (system("rmmod delay_fn"))
		return fail("NFSD is held up for ever");
	if (answers < 0)
		return fail("after %d Calls that were dropped: %s", dropped, probe.reason);
	if (dropped < DROPPED)
		return fail("no more than %d Calls were dropped", dropped);
	return alive(c);
}

/* Asks for connections and is gone before they are accepted. */
bool connect_and_leave(void)
{
	unsigned int i;

	for (i = 0; i < 60; i++) {
		struct conn *c = conn_start(i & 1 ? &params_default : &params_no_reads);

		if (!c)
			return false;
		usleep(i * 500);
		conn_close(c);
	}
	return true;
}

static bool t_shy(struct conn *unused)
{
	(void)unused;
	return connect_and_leave();
}

static const struct test tests[] = {
	{ "R8166-4.5.3-2 R8797-4.2-2 CM0-2.1-2", "a peer with small Receives", t_threshold,
	  .params = &params_1k },
	{ "R8166-3.3.1-8 R8166-3.3.3-2 R8167-4.3.2-1", "many Calls at a time", t_flood },
	{ "R8166-3.3.1-11", "a peer that answers no RDMA Read", t_no_reads },
	{ "R8166-4.5.3-1", "a handle that is not one, to read from", t_bad_handle },
	{ "R8166-4.5.3-1", "a handle that is not one, to write to", t_bad_sink },
	{ "-", "Calls that are not answered", t_dropped },
	{ "-", "peers that leave in the middle", t_leave },
	{ "-", "peers that leave too early", t_shy },
};

const struct group group_peers = {
	.name = "peers", .about = "clients that are small, greedy, gone or shy",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
