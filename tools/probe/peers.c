// SPDX-License-Identifier: GPL-2.0
/*
 * Clients with small Receives, many Calls, invalid handles, or early disconnects.
 */

#include <unistd.h>
#include "counters.h"
#include "delay.h"
#include "expect.h"
#include "file_io.h"
#include "group.h"
#include "nfs4.h"
#include "peers.h"
#include "probe.h"

#define INVALID_HANDLE	0x5a00	/* flips bits of a handle, which does not exist then */

/* Sends a Call with an invalid handle, and checks that the server disconnects without a Reply. */
static bool server_disconnects(struct conn *c, const struct enc *e)
{
	struct reply r;

	/*
	 * The Send may be flushed: the server's RDMA Write can reach this end's device before the
	 * Send's acknowledgment, and ends the connection. The device does not report the access.
	 */
	if (!post_msg(c, e))
		return false;
	if (!wait_disconnected(c, PATIENCE_MS))
		return fail("still connected");
	return get_reply(c, &r, 200) && r.any ? fail("the server replied") : true;
}

static bool t_bad_source(struct conn *c)
{
	struct segment data = area_segment(c, 0, 4096);
	struct enc e = { .len = 0 };

	data.handle ^= INVALID_HANDLE;
	enc_write_call(&e, new_xid(), &data);
	return server_disconnects(c, &e);
}

static bool t_bad_sink(struct conn *c)
{
	struct segment data = area_segment(c, 0, 4096);
	struct enc e = { .len = 0 };

	if (!write_item(c, 0, 4096))
		return false;
	data.handle ^= INVALID_HANDLE;
	enc_read_call(&e, new_xid(), &data, 4096);
	return server_disconnects(c, &e);
}

/* This end's Receive Size is 1024. The Reply does not fit in a Send, but in the Reply chunk. */
static bool t_threshold(struct conn *c)
{
	const struct segment room = area_segment(c, 0, 4096);
	const unsigned int count = 1500;
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at, w = HDR_REPLY_CHUNK;

	enc_inline_read_call(&e, xid, count);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	xid = new_xid();
	e.len = 0;
	enc_reply_chunk_hdr(&e, xid, &room);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, count);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (at)
		return fail("the Reply is inline: %u bytes", r.len);
	return same_chunk_returned(&r, &w, &e, READ_REPLY_LEN + count) &&
	       compound_ok_xid(c->area, xid, 2);
}

/* Sends @n NULL Calls at once. Gets the credits that the last Reply grants. */
static bool send_many(struct conn *c, unsigned int n, unsigned int *granted)
{
	const uint32_t first = probe.next_xid;
	bool seen[RECVS] = { false };
	struct enc e;
	struct reply r;
	unsigned int i, at;

	for (i = 0; i < n; i++) {
		enc_null_call(&e, new_xid());
		if (!post_msg(c, &e))
			return false;
	}
	for (i = 0; i < n; i++) {
		if (!get_reply(c, &r, PATIENCE_MS))
			return false;
		if (!r.any)
			return fail("%u Replies to %u Calls", i, n);
		if (!answers_one(&r, first, n, seen, &at) || !wait_sent(c))
			return false;
		*granted = get_word(r.p, HDR_CREDITS);
	}
	return true;
}

/* As many Calls as were granted. The server has a Receive for each of them. */
static bool t_many_calls(struct conn *c)
{
	const unsigned long before = rnr_count(c);
	unsigned int n, round;
	struct reply r;
	struct enc e;

	enc_null_call(&e, new_xid());
	if (!exchange(c, &e, &r))
		return false;
	n = get_word(r.p, HDR_CREDITS);
	if (n < 2)
		return n ? skip("the server grants one credit") : fail("no credits granted");
	/* The grant may grow with the Calls, and each round uses all of it. */
	for (round = 0; round < 20; round++) {
		if (!send_many(c, n < RECVS ? n : RECVS, &n) || !no_rnr_since(c, before))
			return false;
		if (!n)
			return fail("round %u: no credits granted", round);
	}
	return true;
}

/*
 * A client with RDMA Read depth zero. The server rejects the connection, or accepts it and refuses
 * Calls with Read chunks: RFC 8166 Section 3.3.1 leaves it to the implementations how they agree.
 */
static bool t_no_reads(struct conn *other)
{
	struct conn *c = conn_start(&params_no_reads);
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	bool accepted, ok;

	ok = c && conn_settled(c, &accepted);
	if (ok && accepted) {
		const struct segment data = area_segment(c, 0, 4096);

		enc_write_call(&e, xid, &data);
		ok = refused(c, &e, xid, ERR_CHUNK);
	}
	conn_close(c);
	return ok && alive(other);
}

#define ROUNDS		30
#define TRANSFERS	24
#define TRANSFER_LEN	262144

/* Disconnects while the server uses RDMA Read, RDMA Write and Send on the connection. */
static bool t_disconnect_busy(struct conn *unused)
{
	unsigned int round, i;

	(void)unused;
	for (round = 0; round < ROUNDS; round++) {
		struct conn *c = conn_open(&params_default);
		struct segment data;

		if (!c)
			return false;
		data = area_segment(c, 0, TRANSFER_LEN);
		for (i = 0; i < TRANSFERS; i++) {
			struct enc e = { .len = 0 };

			if (i & 1)
				enc_read_call(&e, new_xid(), &data, TRANSFER_LEN);
			else
				enc_write_call(&e, new_xid(), &data);
			if (!post_msg(c, &e))
				return false;
		}
		usleep(round * 3000);
		conn_close(c);
	}
	return true;
}

#define REPEATS	30
#define DROPPED	300	/* more than a connection has Receives */

/* Sends the same WRITE many times at once. Returns how many Replies arrive, or -1. */
static int repeat_write(struct conn *c)
{
	struct reply r;
	struct enc e;
	int i;

	enc_compound_call(&e, new_xid(), 2);
	enc_lookup(&e, "probe");
	enc_write(&e, 0, 4);
	enc_bytes(&e, "once", 4);
	for (i = 0; i < REPEATS; i++)
		if (!post_msg(c, &e))
			return -1;
	for (i = 0; i < REPEATS; i++)
		if (!wait_sent(c))
			return -1;
	for (i = 0; i <= REPEATS; i++) {
		if (!get_reply(c, &r, i ? 300 : PATIENCE_MS))
			return -1;
		if (!r.any)
			return i;
	}
	fail("more Replies than Calls");
	return -1;
}

/* nfsd drops a repeated Call while the first one is in progress. */
static bool t_dropped(struct conn *c)
{
	int answers = 0, dropped = 0, round;
	struct reply r;

	if (!delay_start("function=nfsd4_proc_compound entry=1 delay_ms=100"))
		return skip("nfsd cannot be delayed");
	for (round = 0; round < 40 && dropped < DROPPED && answers >= 0; round++) {
		answers = repeat_write(c);
		if (answers > 0)
			dropped += REPEATS - answers;
	}
	if (!delay_end())
		return fail("delay_fn cannot be unloaded");
	if (answers < 0)
		return fail("after %d dropped Calls: %s", dropped, probe.reason);
	if (dropped < DROPPED)
		return fail("only %d Calls were dropped", dropped);
	/* Replies may be late. */
	do {
		if (!get_reply(c, &r, 3000))
			return false;
	} while (r.any);
	return alive(c);
}

/* Requests connections, and closes them before they are accepted. */
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

static bool t_disconnect_early(struct conn *unused)
{
	(void)unused;
	return connect_and_leave();
}

/* Immediate data consumes a Receive and leaves its buffer as it is. */
static bool t_immediate(struct conn *c)
{
	const struct segment nothing = { .length = 0 };

	if (is_iwarp(c))
		return skip("iWARP has no immediate data");
	if (!alive(c))
		return false;
	if (rdma(c, IBV_WR_RDMA_WRITE_WITH_IMM, &nothing, 0) < 0)
		return fail("the RDMA Write did not complete");
	return wait_disconnected(c, PATIENCE_MS) ? true :
		fail("the server keeps a connection with immediate data");
}

#define STRANGERS	80
#define KEPT		66	/* SUNRPC keeps 65, and closes another after it has accepted the next */
#define CLOSING		8	/* connections whose memory may not have been released yet */

/* Connects as clients that use no export. Their messages take a bounded amount of memory. */
static bool connect_strangers(struct conn **all)
{
	const long before = server_value("message_octets");
	long one = 0, now;
	unsigned int i, ms;

	for (i = 0; i < STRANGERS; i++) {
		all[i] = conn_open(&params_default);
		if (!all[i] || !alive(all[i]))
			return false;
		now = server_value("message_octets") - before;
		one = i ? one : now;
		for (ms = 0; now > one * (KEPT + CLOSING) && ms < PATIENCE_MS; ms += 100) {
			sleep_ms(100);
			now = server_value("message_octets") - before;
		}
		if (now > one * (KEPT + CLOSING))
			return fail("%u connections take %ld bytes, the first one %ld", i + 1, now,
				    one);
	}
	return true;
}

/*
 * What all clients hold together that no export has admitted is bounded: SUNRPC closes the oldest
 * of their connections, and none of a client that an export has admitted.
 */
static bool t_strangers(struct conn *c)
{
	struct conn *all[STRANGERS] = { NULL };
	unsigned int i, ms, closed = 0;
	bool ok = write_item(c, 0, 4096) && connect_strangers(all);

	for (ms = 0; ok && closed < STRANGERS - KEPT && ms < PATIENCE_MS; ms += 100) {
		sleep_ms(100);
		for (i = 0, closed = 0; i < STRANGERS; i++)
			closed += disconnected(all[i]);
	}
	for (i = 0; i < STRANGERS; i++)
		conn_close(all[i]);
	if (ok && closed < STRANGERS - KEPT)
		ok = fail("the server closed %u of %u connections", closed, STRANGERS);
	return ok && alive(c);
}

static const struct test tests[] = {
	{ "R8166-4.5.3-2 R8797-4.2-2 CM0-2.1-2", "a client with small Receives", t_threshold,
	  .params = &params_1k },
	{ "R8166-3.3.1-8 R8166-3.3.3-2 R8167-4.3.2-1", "as many Calls as were granted",
	  t_many_calls },
	{ "R8166-3.3.1-11", "a client that answers no RDMA Reads", t_no_reads },
	{ "R8166-4.5.3-1", "an invalid handle to read from", t_bad_source },
	{ "R8166-4.5.3-1", "an invalid handle to write to", t_bad_sink },
	{ "-", "an RDMA Write With Immediate", t_immediate },
	{ "-", "Calls that nfsd drops", t_dropped },
	{ "-", "disconnects during transfers", t_disconnect_busy },
	{ "-", "disconnects before the connection is accepted", t_disconnect_early },
	{ "-", "300 clients wait to be accepted", wait_for_busy_server },
	{ "-", "80 clients that use no export", t_strangers },
};

const struct group group_peers = {
	.name = "peers", .about = "clients that are small, busy, wrong, or disconnect early",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
