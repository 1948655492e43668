// SPDX-License-Identifier: GPL-2.0
/*
 * Replies that a requester has to drop, or that end its Call. Those that it drops are
 * sent before the right one; it says nothing about them.
 */

#include "compat.h"

enum { NFS3ERR_ACCES = 13 };

/* Spoils a right Reply; there may be several ways. False if there are no more. */
typedef bool (*spoil_fn)(struct enc *e, const struct call *call, unsigned int way);

/* The right Reply to a READ, and one that says that it has failed. */
static bool make_both(struct conn *c, struct call *call, struct enc *right, struct enc *failed)
{
	unsigned int status;

	if (!make_reply(c, call, right))
		return false;
	/* The RPC Reply has six words; NFS_PROGRAM's status is behind them. */
	status = reply_hdr_len(call) / 4 + 6;
	if (get_word(right->buf, HDR_PROC) != RDMA_MSG || right->len <= 4 * status || get_word(right->buf, status))
		return fail("no READ that succeeds: proc %u, %u octets", get_word(right->buf, HDR_PROC), right->len);
	*failed = *right;
	put_word(failed, status, NFS3ERR_ACCES);
	return true;
}

/*
 * Reads wait for their Reply while wrong ones come. These say that the READ has failed: who
 * believes one of them has no data.
 */
static bool first(struct conn *c, struct call *call, spoil_fn spoil)
{
	struct enc right, failed, wrong;
	unsigned int way;

	if (!is_read(call))
		return answer_correctly(c, call);
	if (!make_both(c, call, &right, &failed))
		return false;
	for (way = 0;; way++) {
		wrong = failed;
		if (!spoil(&wrong, call, way))
			break;
		serving.call_seen = true;
		if (!send_msg(c, &wrong))
			return false;
	}
	return send_msg(c, &right);
}

static bool spoil_short(struct enc *e, const struct call *call, unsigned int way)
{
	static const unsigned int ways[] = { 0, 4, 8, 12, 15, 16, 20, 24, 27 };

	(void)call;
	if (way >= COUNT(ways))
		return false;
	e->len = ways[way];
	return true;
}

/* Words of the header that cannot be: the word, and what it says. */
static bool spoil_lists(struct enc *e, const struct call *call, unsigned int way)
{
	static const struct {
		unsigned int word;
		uint32_t value;
	} ways[] = {
		{ 4, 1 },			/* a Read list */
		{ 4, 2 }, { 5, 2 }, { 5, 0xffffffff },
		{ 6, 0x7fffffff }, { 6, 0x10000000 }, { 6, 0xffffffff },
	};

	(void)call;
	if (way >= COUNT(ways))
		return false;
	put_word(e, ways[way].word, ways[way].value);
	return true;
}

/* The Write chunk is returned as another one than was given. */
static bool spoil_chunk(struct enc *e, const struct call *call, unsigned int way)
{
	const uint32_t handle = get_word(e->buf, 7), length = get_word(e->buf, 8), n = get_word(e->buf, 6);

	if (!call->writes)
		return false;
	switch (way) {
	case 0:
		put_word(e, 7, handle ^ 0x1000);
		return true;
	case 1:
		put_word(e, 8, call->write.seg[0].length + 4);
		return true;
	case 2:
		put_word(e, 8, 0xfffffffc);
		return true;
	case 3:
		put_word(e, 10, get_word(e->buf, 10) + length + 4);
		return true;
	case 4:
		/* A segment more. (None at all may stand for an unused chunk.) */
		put_word(e, 6, n + 1);
		memmove(e->buf + 44, e->buf + 28, e->len - 28);
		e->len += 16;
		return true;
	}
	return false;
}

static bool spoil_xid(struct enc *e, const struct call *call, unsigned int way)
{
	unsigned int w = e->len / 4;

	/* The RPC message starts with the same XID: the last such word. */
	while (--w && get_word(e->buf, w) != call->xid)
		;
	put_word(e, w, call->xid ^ 0x80000000);
	return way < 1;
}

static bool spoil_version(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, 1, way ? 2 : 0);
	return way < 2;
}

static bool spoil_msgp(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, 3, RDMA_MSGP);
	return way < 1;
}

static bool spoil_unknown(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, 3, way ? 0xffffffff : 5);
	return way < 2;
}

static bool spoil_done(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, 3, RDMA_DONE);
	if (way)
		e->len = 16;
	return way < 2;
}

/* Errors that say nothing, or not all of it. */
static bool spoil_error(struct enc *e, const struct call *call, unsigned int way)
{
	static const struct {
		uint32_t err;
		unsigned int octets;
	} ways[] = { { 9, 20 }, { 0, 20 }, { ERR_VERS, 20 }, { ERR_VERS, 24 }, { ERR_CHUNK, 16 } };

	if (way >= COUNT(ways))
		return false;
	e->len = 0;
	enc_error(e, call->xid, ways[way].err);
	e->len = ways[way].octets;
	return true;
}

#define FIRST(what)							\
	static bool first_##what(struct conn *c, struct call *call)	\
	{								\
		return first(c, call, spoil_##what);			\
	}

FIRST(short)
FIRST(lists)
FIRST(chunk)
FIRST(xid)
FIRST(version)
FIRST(msgp)
FIRST(unknown)
FIRST(done)
FIRST(error)

#define BAD_REPLIES	20	/* the place in the statistics */
#define UNWANTED	300	/* more than the client ever has Receives */

/* The client has dropped so many more. */
static bool has_dropped(unsigned long before, unsigned int n)
{
	const int64_t start = now_ms();
	unsigned long dropped;

	do {
		dropped = xprt_stat(BAD_REPLIES) - before;
		if (dropped >= n)
			return true;
		usleep(1000);
	} while (now_ms() - start < 5000 * probe.time_factor);
	return fail("of %u Replies %lu were dropped", n, dropped);
}

/* In each turn all that is wrong. The Receive that a Reply has taken is posted again. */
static bool first_many(struct conn *c, struct call *call)
{
	static const spoil_fn spoils[] = {
		spoil_short, spoil_lists, spoil_chunk, spoil_xid, spoil_version, spoil_msgp,
		spoil_unknown, spoil_done, spoil_error,
	};
	const unsigned long early = rnr_count(c), before = xprt_stat(BAD_REPLIES);
	unsigned int n = 0, i = 0, way = 0;
	struct enc right, failed, wrong;

	if (!is_read(call))
		return answer_correctly(c, call);
	if (!make_both(c, call, &right, &failed))
		return false;
	while (n < UNWANTED) {
		wrong = failed;
		if (!spoils[i](&wrong, call, way++)) {
			i = (i + 1) % COUNT(spoils);
			way = 0;
			continue;
		}
		if (!send_msg(c, &wrong) || (++n % 8 == 0 && !has_dropped(before, n)))
			return false;
	}
	serving.call_seen = true;
	return no_rnr_since(c, early) && send_msg(c, &right) && no_rnr_since(c, early);
}

/* Errors for READs. */
static bool refuse_chunk(struct conn *c, struct call *call)
{
	return is_read(call) ? refuse_once(c, call, ERR_CHUNK) : answer_correctly(c, call);
}

static bool refuse_version(struct conn *c, struct call *call)
{
	return is_read(call) ? refuse_once(c, call, ERR_VERS) : answer_correctly(c, call);
}

/* The first READ is said to make no sense: SUNRPC asks again before it gives up. */
static bool garbage(struct conn *c, struct call *call)
{
	static unsigned int times;
	struct enc e = { .len = 0 };

	if (!is_read(call) || times == 2)
		return answer_correctly(c, call);
	serving.call_seen = ++times == 2;
	enc_call_hdr(&e, call->xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_reply(&e, call->xid, GARBAGE_ARGS);
	return send_msg(c, &e);
}

/* An error to a Call that nobody has made. */
static bool refuse_nothing(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };

	serving.call_seen = true;
	enc_error(&e, call->xid ^ 0x80000000, ERR_CHUNK);
	return send_msg(c, &e) && answer_correctly(c, call);
}

/* A short Reply although there is a chunk for it, which is returned unused. */
static bool unused_reply_chunk(struct conn *c, struct call *call)
{
	struct enc e;

	if (!make_reply(c, call, &e))
		return false;
	serving.call_seen |= call->reply.n && get_word(e.buf, HDR_PROC) == RDMA_MSG;
	return send_msg(c, &e);
}

/* How much of a directory is wanted is the last that a READDIRPLUS says, and is not all. */
static bool long_reply(struct conn *c, struct call *call)
{
	const bool plus = call->program == NFS_PROGRAM && call->procedure == NFS3_READDIRPLUS;
	struct enc e;

	if (plus && call->reply.n && chunk_len(&call->reply) <= get_word(call->rpc, call->len / 4 - 1))
		return fail("%u octets are wanted, and there is room for %u",
			    get_word(call->rpc, call->len / 4 - 1), chunk_len(&call->reply));
	if (!make_reply(c, call, &e))
		return false;
	serving.call_seen |= get_word(e.buf, HDR_PROC) == RDMA_NOMSG;
	return send_msg(c, &e);
}

/* The client has no Receive for this: it costs the connection, and the Call comes again. */
static bool overrun(struct conn *c, struct call *call)
{
	struct enc e;
	int ms;

	if (serving.call_seen || !is_read(call))
		return answer_correctly(c, call);
	if (peer_recv_size(c) + 4 > sizeof(e.buf))
		return skip("the client's Receives are too long");
	if (!make_reply(c, call, &e))
		return false;
	while (e.len < peer_recv_size(c) + 4)
		enc_u32(&e, 0);
	if (!post_msg(c, &e))
		return false;
	for (ms = 0; ms < 5000 * probe.time_factor && !disconnected(c); ms += 10)
		usleep(10000);
	serving.call_seen = true;
	return c->disconnected ? true : fail("the connection was kept");
}

/*
 * Its segments have been looked at, and each is at Position zero. One of them shows little: rxe
 * and siw have no regions with gaps.
 */
static bool long_call(struct conn *c, struct call *call)
{
	serving.call_seen |= call->proc == RDMA_NOMSG && call->reads.n > 1;
	return answer_correctly(c, call);
}

/* The data is in one piece again. */
static bool split_read(struct conn *c, struct call *call)
{
	serving.call_seen |= is_read(call) && call->write.n > 1;
	return answer_correctly(c, call);
}

/*
 * More was written than the READ is said to have: by how much it is less, what follows the data
 * is behind it. The client asks for the rest.
 */
static bool less_than_written(struct conn *c, struct call *call)
{
	static const struct {
		unsigned int divisor, odd, count;
	} ways[] = { { 2, 0, 4 }, { 1, 0, 4 }, { 2, 3, 1 }, { 4, 1, 4095 }, { 1, 0, 9 } };
	static unsigned int way;
	unsigned int all;
	struct enc e;

	if (!is_read(call) || !call->write.n || way == COUNT(ways))
		return answer_correctly(c, call);
	if (!make_reply(c, call, &e))
		return false;
	all = read_result_len(&e, call);
	if (!all)
		return fail("no READ that succeeds: proc %u, %u octets", get_word(e.buf, HDR_PROC), e.len);
	if (all / 4 > ways[way].count) {
		set_read_result(&e, call, all / ways[way].divisor - ways[way].odd, ways[way].count);
		serving.call_seen = ++way == COUNT(ways);
	}
	return send_msg(c, &e);
}

/* An odd number of octets each way, in chunks that hold these and no roundup. */
#define ODD	20001

static bool is_exact(const struct call *call, unsigned int announced, const struct chunk *chunk)
{
	const unsigned int held = chunk_len(chunk);

	serving.call_seen = true;
	if (announced == ODD && held == ODD)
		return true;
	return fail("procedure %u of %u octets, %u in the chunk", call->procedure, announced, held);
}

/* The length of the data is in front of it. */
static bool exact_write(struct conn *c, struct call *call)
{
	if (!is_write(call))
		return answer_correctly(c, call);
	if (!call->reads.n || call->position < 4 || call->position > call->len)
		return fail("a WRITE of %u octets, its Read chunk at %u", call->len,
			    call->position);
	return is_exact(call, get_word(call->rpc, call->position / 4 - 1), &call->reads) &&
	       answer_correctly(c, call);
}

/* How much is wanted is the last that a READ says. */
static bool exact_read(struct conn *c, struct call *call)
{
	if (!is_read(call))
		return answer_correctly(c, call);
	return is_exact(call, get_word(call->rpc, call->len / 4 - 1), &call->write) &&
	       answer_correctly(c, call);
}

static int write_and_read_odd(void)
{
	return write_and_read(MOUNTPOINT "/odd", 1, ODD, ODD);
}

static const struct test tests[] = {
	{ "R8166-3.4.6-1 R8166-4.3.1-2 R8166-4.3.2.1-1 R8166-4.3.2.1-3", "READ",
	  .work = read_file },
	{ "R8166-3.4.6.1-1", "READ of more than a segment may hold",
	  .answer = split_read, .work = read_large,
	  .mount_options = "rsize=1048576,wsize=65536" },
	{ "-", "READs that are shorter than what was written",
	  .answer = less_than_written, .work = read_file },
	{ "R8166-3.5.2-1 R8166-3.4.5.2-3 R8166-3.4.5-2 R8166-3.4.2-1", "WRITE", .work = write_file },
	{ "R8166-3.4.5.2-1 R8166-3.4.5.2-3", "a Read chunk without roundup",
	  .answer = exact_write, .work = write_and_read_odd },
	{ "R8166-3.4.6.2-1", "a Write chunk without room for roundup",
	  .answer = exact_read, .work = write_and_read_odd },
	{ "R8166-3.5.3-2 R8166-3.5.3-3", "a long Call",
	  .answer = long_call, .work = set_acl, .params = &params_1k },
	{ "R8166-3.5.3-4", "a long Reply", .answer = long_reply, .work = list_directory },
	{ "R8166-4.3.3-4", "a Reply chunk that is not used",
	  .answer = unused_reply_chunk, .work = list_empty },
	{ "R8166-2.3.2-2", "a Reply longer than a Receive",
	  .answer = overrun, .work = read_file, .min_connections = 2 },
	{ "R8166-4.5-1", "Replies too short to be headers", .answer = first_short, .work = read_file },
	{ "R8166-4.5-3 R8166-4.2.4-4", "malformed lists", .answer = first_lists, .work = read_file },
	{ "R8166-4.5-3 R8166-3.4.6.1-1", "a Write chunk that was not given",
	  .answer = first_chunk, .work = read_file },
	{ "R8166-4.2.1-1", "different XIDs in header and payload",
	  .answer = first_xid, .work = read_file },
	{ "R8166-4.5-3", "another version", .answer = first_version, .work = read_file },
	{ "R8166-4.6.1-3", "RDMA_MSGP", .answer = first_msgp, .work = read_file },
	{ "R8166-4.5-3", "unknown procedures", .answer = first_unknown, .work = read_file },
	{ "R8166-4.6.2-2", "RDMA_DONE", .answer = first_done, .work = read_file },
	{ "R8166-4.5-8", "errors that cannot be read", .answer = first_error, .work = read_file },
	{ "R8166-3.3.1-9 R8166-4.5-3", "many malformed Replies",
	  .answer = first_many, .work = read_file },
	{ "-", "Replies after which SUNRPC asks again", .answer = garbage, .work = read_file },
	{ "R8166-4.5-7", "ERR_CHUNK", .answer = refuse_chunk, .work = read_file, .work_errno = EIO },
	{ "R8166-4.5-7", "ERR_VERS", .answer = refuse_version, .work = read_file, .work_errno = EIO },
	{ "R8166-4.5-8", "an error that nobody has asked for",
	  .answer = refuse_nothing, .work = read_file },
};

const struct group group_replies = {
	.name = "replies", .about = "a server whose Replies are to be dropped",
	.tests = tests, .n = COUNT(tests),
};
