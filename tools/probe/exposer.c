// SPDX-License-Identifier: GPL-2.0
/*
 * A server that exposes its Replies to the kernel's client (Documentation/pulled-replies.rst), in
 * valid and invalid ways. The client sends one RDMA_DONE for each announcement. A Reply that it
 * cannot accept ends its RPC, and nothing else.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "answers.h"
#include "expose.h"
#include "group.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

#define SOON_MS	300		/* in which a message arrives */
#define HELD	"/tmp/probe-held"	/* the server does not reply to the Call */

/* Divides a Reply of @len bytes into segments. */
typedef void (*split_fn)(struct conn *c, struct chunk *x, unsigned int len);

/* Exposes the right Reply at this place, unless the Call has a Reply chunk for it. */
static bool expose_split(struct conn *c, struct call *call, unsigned int at, split_fn split)
{
	struct chunk x = { .n = 0 };
	unsigned int len;

	if (call->reply.n)
		return answer_correctly(c, call);
	len = place_reply(c, call, at);
	if (!len)
		return false;
	split(c, &x, len);
	return announce(c, call->xid, &x, 0);
}

static void one_segment(struct conn *c, struct chunk *x, unsigned int len)
{
	add_segment(c, x, 0, len);
}

#define UNALIGNED_AT	3

static void unaligned(struct conn *c, struct chunk *x, unsigned int len)
{
	add_segment(c, x, UNALIGNED_AT, 1);
	add_segment(c, x, UNALIGNED_AT + 1, 6);
	add_segment(c, x, UNALIGNED_AT + 7, 77);
	add_segment(c, x, UNALIGNED_AT + 84, len - 84);
}

static void with_empty_segments(struct conn *c, struct chunk *x, unsigned int len)
{
	add_segment(c, x, 0, 0);
	add_segment(c, x, 0, 40);
	add_segment(c, x, 40, 0);
	add_segment(c, x, 40, len - 40);
	add_segment(c, x, len, 0);
}

/* reply_stat and the flavor of the verifier are both zero: one word stands for both. */
static void overlapping(struct conn *c, struct chunk *x, unsigned int len)
{
	add_segment(c, x, 0, 12);
	add_segment(c, x, 8, 4);
	add_segment(c, x, 16, len - 16);
}

static void sixteen_segments(struct conn *c, struct chunk *x, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < 15; i++)
		add_segment(c, x, 4 * i, 4);
	add_segment(c, x, 60, len - 60);
}

static bool pull_whole(struct conn *c, struct call *call)
{
	return expose_split(c, call, 0, one_segment);
}

static bool pull_unaligned(struct conn *c, struct call *call)
{
	return expose_split(c, call, UNALIGNED_AT, unaligned);
}

static bool pull_with_empty_segments(struct conn *c, struct call *call)
{
	return expose_split(c, call, 0, with_empty_segments);
}

static bool pull_overlapping(struct conn *c, struct call *call)
{
	return expose_split(c, call, 0, overlapping);
}

static bool pull_sixteen_segments(struct conn *c, struct call *call)
{
	return expose_split(c, call, 0, sixteen_segments);
}

/* Announces an invalid Reply to the case's first listing, and exposes a valid one to all others. */
static bool expose_invalid(struct conn *c, struct call *call, split_fn split, uint32_t position)
{
	static unsigned int last;
	struct chunk x = { .n = 0 };
	unsigned int len;

	if (!first_in_case(&last))
		return expose_reply(c, call);
	len = place_reply(c, call, 0);
	if (!len)
		return false;
	split(c, &x, len);
	return announce(c, call->xid, &x, position);
}

static void four_gib(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add_segment(c, x, 0, 0xffffffff);
}

static void more_than_32_bits(struct conn *c, struct chunk *x, unsigned int len)
{
	add_segment(c, x, 0, len);
	add_segment(c, x, 0, 0x80000000);
	add_segment(c, x, 0, 0x80000000);
}

static void zero_bytes(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add_segment(c, x, 0, 0);
	add_segment(c, x, 0, 0);
}

static void three_bytes(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add_segment(c, x, 0, 3);
}

/* More than any consumer has room for. The memory exists. */
static void too_long(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add_segment(c, x, 0, AREA / 2);
}

static void forty_segments(struct conn *c, struct chunk *x, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < 39; i++)
		add_segment(c, x, 4 * i, 4);
	add_segment(c, x, 4 * i, len);
}

#define INVALID(split, position)							\
	static bool invalid_##split(struct conn *c, struct call *call)			\
	{										\
		return expose_invalid(c, call, split, position);			\
	}

INVALID(four_gib, 0)
INVALID(more_than_32_bits, 0)
INVALID(zero_bytes, 0)
INVALID(three_bytes, 0)
INVALID(too_long, 0)
INVALID(forty_segments, 0)
INVALID(one_segment, 4)		/* not at Position zero */

/* The Write chunk is returned full, as if it had the data, and the rest is exposed. */
static bool expose_reduced(struct conn *c, struct call *call)
{
	const struct segment rest = area_segment(c, EXPOSED_AT, 128);
	struct enc e = { .len = 0 };
	unsigned int i;

	enc_hdr(&e, call->xid, RPCRDMA_VERSION, serving.grant, RDMA_NOMSG);
	enc_rseg(&e, 0, rest.handle, rest.length, rest.offset);
	enc_list_end(&e);
	enc_chunk_head(&e, call->write.n);
	for (i = 0; i < call->write.n; i++)
		enc_seg(&e, call->write.seg[i].handle, call->write.seg[i].length,
			call->write.seg[i].offset);
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	return announce_message(c, call->xid, &e);
}

/* Pulling through an invalid handle ends the connection. Nothing is owed on the next one. */
static bool bad_handle(struct conn *c, struct call *call)
{
	static unsigned int last;
	struct chunk x = { .n = 0 };

	if (!first_in_case(&last)) {
		forget_owed();
		return expose_reply(c, call);
	}
	add_segment(c, &x, 0, place_reply(c, call, 0));
	x.seg[0].handle ^= 0x5a5a00;
	return announce(c, call->xid, &x, 0);
}

static bool unknown_xid(struct conn *c, struct call *call)
{
	struct chunk x = { .n = 0 };

	add_segment(c, &x, 0, 4096);
	return announce(c, call->xid ^ 0x80000000, &x, 0) && expose_reply(c, call);
}

static bool twice(struct conn *c, struct call *call)
{
	return expose_reply(c, call) && expose_reply(c, call);
}

/* An RDMA_MSG with a Read list is not understood: the client sends no RDMA_DONE for it. */
static bool beside_payload(struct conn *c, struct call *call)
{
	const struct segment exposed = area_segment(c, EXPOSED_AT, 4096);
	struct enc e = { .len = 0 };

	enc_hdr(&e, call->xid, RPCRDMA_VERSION, serving.grant, RDMA_MSG);
	enc_rseg(&e, 0, exposed.handle, exposed.length, exposed.offset);
	enc_no_chunks(&e);
	enc_rpc_reply(&e, call->xid, ACCEPT_SUCCESS);
	return send_msg(c, &e) && expose_reply(c, call);
}

/*
 * Breaks the connection at the first listing. The Call is sent again with a Reply chunk: the server
 * may have refused it because its Reply was long, and the refusal may have been lost.
 */
static bool sent_again(struct conn *c, struct call *call)
{
	static uint32_t lost_xid;
	static unsigned int last;

	if (first_in_case(&last)) {
		lost_xid = call->xid;
		close_peer();
		return true;
	}
	if (call->xid == lost_xid && !call->reply.n)
		return fail("a Call is sent again without a Reply chunk");
	serving.call_seen |= call->xid == lost_xid;
	return expose_reply(c, call);
}

/* Announces the Reply to the first Call after its task was killed and another task has called. */
static bool too_late(struct conn *c, struct call *call)
{
	static uint32_t held_xid;
	static unsigned int last;
	struct chunk x = { .n = 0 };

	if (first_in_case(&last)) {
		held_xid = call->xid;
		close(open(HELD, O_CREAT | O_WRONLY, 0600));
		return true;
	}
	if (held_xid) {
		add_segment(c, &x, 0, 4096);
		if (!announce(c, held_xid, &x, 0))
			return false;
		held_xid = 0;
	}
	return expose_reply(c, call);
}

/*
 * ERR_VERS is final, with or without a Reply chunk. ERR_CHUNK, from a server that cannot expose
 * this Reply, is not.
 */
static bool refuse_version(struct conn *c, struct call *call)
{
	return is_listing(call) ? refuse_once(c, call, ERR_VERS) : answer_correctly(c, call);
}

/* RDMA_DONEs are processed only while there is work. */
static int and_wait(int status)
{
	sleep_ms(SOON_MS);
	return status;
}

static int list(void)
{
	return and_wait(list_directory());
}

static int list_twice(void)
{
	const int status = list_directory();

	if (status != EIO)
		return status ? status : ENOTUNIQ;
	return and_wait(list_directory());
}

static int read_and_wait(void)
{
	return and_wait(read_file());
}

static int list_and_be_killed(void)
{
	pid_t child;
	unsigned int ms;

	unlink(HELD);
	child = fork();
	if (!child)
		_exit(list_directory());
	for (ms = 0; ms < PATIENCE_MS && access(HELD, F_OK); ms += 100)
		sleep_ms(100);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return list();
}

/* The cases are about listings, and about READs with a Write chunk. */
static bool answer_other(struct conn *c, struct call *call, bool *ok)
{
	if (call->proc == RDMA_DONE)
		*ok = take_done(call);
	else if (is_listing(call) || (is_read(call) && call->writes == 1))
		return false;
	else
		*ok = answer_correctly(c, call);
	return true;
}

static bool client_pulls(const struct conn *c)
{
	return !is_iwarp(c) || peer_pulls(c) ? true :
		skip("over iWARP the client pulls no Replies");
}

static const struct test tests[] = {
	{ "RR4-4.1.2-1 RR4-4.1.3-1", "exposed Replies", .answer = pull_whole, .work = list },
	{ "RR4-4.1-1", "segments of any length and alignment", .answer = pull_unaligned,
	  .work = list },
	{ "RR4-4.1-1", "empty segments among others", .answer = pull_with_empty_segments,
	  .work = list },
	{ "RR4-4.1-1", "sixteen segments", .answer = pull_sixteen_segments, .work = list },
	{ "RR4-5.4.2-1", "overlapping segments", .answer = pull_overlapping, .work = list },
	{ "RR4-5.4.2-1", "a segment of 4 GiB", .answer = invalid_four_gib, .work = list_twice },
	{ "RR4-5.4.2-1", "segments of more than 4 GiB together",
	  .answer = invalid_more_than_32_bits, .work = list_twice },
	{ "RR4-5.4.2-1", "an empty Reply", .answer = invalid_zero_bytes, .work = list_twice },
	{ "RR4-5.4.2-1", "a Reply of three bytes", .answer = invalid_three_bytes,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "a Reply that is too long for its receive buffer",
	  .answer = invalid_too_long, .work = list_twice },
	{ "RR4-5.4.2-1", "forty segments", .answer = invalid_forty_segments, .work = list_twice },
	{ "RR4-5.4.2-1", "a Position that is not zero", .answer = invalid_one_segment,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "a reduced Reply", .answer = expose_reduced, .work = read_and_wait,
	  .work_errno = EIO },
	{ "RR4-5.4.2-1", "data is exposed although it fits in the Write chunk",
	  .answer = pull_whole, .work = read_and_wait, .work_errno = EIO },
	{ "RR4-4.1.2-2", "an invalid handle", .answer = bad_handle, .work = list,
	  .min_connections = 2 },
	{ "-", "a Call that is sent again on the next connection", .answer = sent_again,
	  .work = list, .min_connections = 2 },
	{ "RR4-4.1.3-3", "an unknown XID", .answer = unknown_xid, .work = list },
	{ "RR4-4.1.3-3", "an RPC whose task was killed", .answer = too_late,
	  .work = list_and_be_killed },
	{ "RR4-4.1.3-3", "each Reply twice", .answer = twice, .work = list },
	{ "R8166-4.5-7", "ERR_VERS", .answer = refuse_version, .work = list, .work_errno = EIO },
	{ "R8166-4.3.1-3", "a Read list beside a payload", .answer = beside_payload,
	  .work = list },
};

const struct group group_exposer = {
	.name = "exposer", .about = "a server that exposes its Replies, in valid and invalid ways",
	.tests = tests, .n = COUNT(tests), .params = &params_pulled,
	.answer_other = answer_other, .client_supports = client_pulls,
};
