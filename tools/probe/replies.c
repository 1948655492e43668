// SPDX-License-Identifier: GPL-2.0
/*
 * A server that sends invalid Replies, which the kernel's client has to drop, and Replies that end
 * the RPC or use its chunks in unusual ways.
 */

#include <errno.h>
#include <unistd.h>
#include "answers.h"
#include "counters.h"
#include "group.h"
#include "probe.h"
#include "serve.h"
#include "spoil.h"
#include "transfer.h"
#include "work.h"

enum { NFS3ERR_ACCES = 13 };

/* Makes the right Reply to a READ, and one that says that the READ has failed. */
static bool make_both(struct conn *c, struct call *call, struct enc *right, struct enc *failed)
{
	unsigned int status;

	if (!make_reply(c, call, right))
		return false;
	status = reply_hdr_len(call) / 4 + NFS_STATUS;
	if (get_word(right->buf, HDR_PROC) != RDMA_MSG || right->len <= 4 * status ||
	    get_word(right->buf, status))
		return fail("the READ fails: proc %u, %u bytes", get_word(right->buf, HDR_PROC),
			    right->len);
	*failed = *right;
	put_word(failed, status, NFS3ERR_ACCES);
	return true;
}

/*
 * Sends invalid Replies to a READ, and then the right one. The invalid ones say that the READ has
 * failed, so a client that accepts one of them has no data.
 */
static bool answer_invalid_first(struct conn *c, struct call *call, spoil_fn spoil)
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

#define INVALID_FIRST(what)							\
	static bool invalid_##what(struct conn *c, struct call *call)		\
	{									\
		return answer_invalid_first(c, call, spoil_##what);		\
	}

INVALID_FIRST(length)
INVALID_FIRST(lists)
INVALID_FIRST(chunk)
INVALID_FIRST(xid)
INVALID_FIRST(version)
INVALID_FIRST(msgp)
INVALID_FIRST(procedure)
INVALID_FIRST(done)
INVALID_FIRST(error)

#define BAD_REPLIES	20	/* the column of xprt_stat() */
#define MANY_INVALID	300	/* more than the client ever has Receives */

/* Waits until the client has dropped this many Replies. */
static bool wait_dropped(unsigned long before, unsigned int n)
{
	const int64_t start = now_ms();
	unsigned long dropped;

	do {
		dropped = xprt_stat(BAD_REPLIES) - before;
		if (dropped >= n)
			return true;
		usleep(1000);
	} while (now_ms() - start < PATIENCE_MS * probe.time_factor);
	return fail("%lu of %u invalid Replies were dropped", dropped, n);
}

/* Invalid Replies of every kind. The client has to repost the Receive of each of them. */
static bool invalid_many(struct conn *c, struct call *call)
{
	static const spoil_fn spoils[] = {
		spoil_length, spoil_lists, spoil_chunk, spoil_xid, spoil_version, spoil_msgp,
		spoil_procedure, spoil_done, spoil_error,
	};
	const unsigned long rnr = rnr_count(c), before = xprt_stat(BAD_REPLIES);
	unsigned int n = 0, i = 0, way = 0;
	struct enc right, failed, wrong;

	if (!is_read(call))
		return answer_correctly(c, call);
	if (!make_both(c, call, &right, &failed))
		return false;
	while (n < MANY_INVALID) {
		wrong = failed;
		if (!spoils[i](&wrong, call, way++)) {
			i = (i + 1) % COUNT(spoils);
			way = 0;
			continue;
		}
		if (!send_msg(c, &wrong) || (++n % 8 == 0 && !wait_dropped(before, n)))
			return false;
	}
	serving.call_seen = true;
	return no_rnr_since(c, rnr) && send_msg(c, &right) && no_rnr_since(c, rnr);
}

static bool refuse_chunk(struct conn *c, struct call *call)
{
	return is_read(call) ? refuse_once(c, call, ERR_CHUNK) : answer_correctly(c, call);
}

static bool refuse_version(struct conn *c, struct call *call)
{
	return is_read(call) ? refuse_once(c, call, ERR_VERS) : answer_correctly(c, call);
}

/* GARBAGE_ARGS to the first two READs: SUNRPC retries before it gives up. */
static bool garbage_args(struct conn *c, struct call *call)
{
	static unsigned int times;
	struct enc e = { .len = 0 };

	if (!is_read(call) || times == 2)
		return answer_correctly(c, call);
	serving.call_seen = ++times == 2;
	enc_hdr(&e, call->xid, RPCRDMA_VERSION, serving.grant, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_reply(&e, call->xid, GARBAGE_ARGS);
	return send_msg(c, &e);
}

static bool unsolicited_error(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };

	serving.call_seen = true;
	enc_error(&e, call->xid ^ 0x80000000, ERR_CHUNK);
	return send_msg(c, &e) && answer_correctly(c, call);
}

/* A Short Reply to a Call with a Reply chunk, which is returned unused. */
static bool unused_reply_chunk(struct conn *c, struct call *call)
{
	struct enc e;

	if (!make_reply(c, call, &e))
		return false;
	serving.call_seen |= call->reply.n && get_word(e.buf, HDR_PROC) == RDMA_MSG;
	return send_msg(c, &e);
}

/* The Reply chunk has to be longer than maxcount, the last argument of READDIRPLUS. */
static bool long_reply(struct conn *c, struct call *call)
{
	struct enc e;

	if (is_nfs3(call, NFS3_READDIRPLUS) && call->reply.n) {
		const uint32_t maxcount = get_word(call->rpc, call->len / 4 - 1);

		if (chunk_len(&call->reply) <= maxcount)
			return fail("maxcount %u, Reply chunk of %u bytes", maxcount,
				    chunk_len(&call->reply));
	}
	if (!make_reply(c, call, &e))
		return false;
	serving.call_seen |= get_word(e.buf, HDR_PROC) == RDMA_NOMSG;
	return send_msg(c, &e);
}

/* A message longer than the client's Receives ends the connection. The Call is retransmitted. */
static bool reply_too_long(struct conn *c, struct call *call)
{
	struct enc e;

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
	serving.call_seen = true;
	return wait_disconnected(c, PATIENCE_MS) ? true : fail("still connected");
}

/* rxe and siw support no MR with gaps, so a Long Call has several Position-zero segments. */
static bool long_call(struct conn *c, struct call *call)
{
	serving.call_seen |= call->proc == RDMA_NOMSG && call->reads.n > 1;
	return answer_correctly(c, call);
}

static bool split_read(struct conn *c, struct call *call)
{
	serving.call_seen |= is_read(call) && call->write.n > 1;
	return answer_correctly(c, call);
}

/*
 * The READ returns a smaller count than was written to the Write chunk. The rest of the Reply then
 * does not follow the data directly. The client reads the remaining bytes by another READ.
 */
static bool less_than_written(struct conn *c, struct call *call)
{
	static const struct {
		unsigned int divisor, minus;	/* of the bytes in the Write chunk */
		unsigned int count;
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
		return fail("the READ fails: proc %u, %u bytes", get_word(e.buf, HDR_PROC), e.len);
	if (all / 4 > ways[way].count) {
		set_read_result(&e, call, all / ways[way].divisor - ways[way].minus,
				ways[way].count);
		serving.call_seen = ++way == COUNT(ways);
	}
	return send_msg(c, &e);
}

#define UNALIGNED	20001	/* bytes of data, for which the chunks have no roundup */

static bool has_no_roundup(const struct call *call, unsigned int count, const struct chunk *chunk)
{
	const unsigned int len = chunk_len(chunk);

	serving.call_seen = true;
	if (count == UNALIGNED && len == UNALIGNED)
		return true;
	return fail("procedure %u of %u bytes, %u in the chunk", call->procedure, count, len);
}

/* The count is the word in front of the data. */
static bool exact_write(struct conn *c, struct call *call)
{
	if (!is_write(call))
		return answer_correctly(c, call);
	if (!call->reads.n || call->position < 4 || call->position > call->len)
		return fail("a WRITE of %u bytes, its Read chunk at Position %u", call->len,
			    call->position);
	return has_no_roundup(call, get_word(call->rpc, call->position / 4 - 1), &call->reads) &&
	       answer_correctly(c, call);
}

/* The count is the last argument of READ. */
static bool exact_read(struct conn *c, struct call *call)
{
	if (!is_read(call))
		return answer_correctly(c, call);
	return has_no_roundup(call, get_word(call->rpc, call->len / 4 - 1), &call->write) &&
	       answer_correctly(c, call);
}

static int write_and_read_unaligned(void)
{
	return write_and_read(MOUNTPOINT "/odd", 1, UNALIGNED, UNALIGNED);
}

static const struct test tests[] = {
	{ "R8166-3.4.6-1 R8166-4.3.1-2 R8166-4.3.2.1-1 R8166-4.3.2.1-3", "READ",
	  .work = read_file },
	{ "R8166-3.4.6.1-1", "READ of more than an MR holds",
	  .answer = split_read, .work = read_large,
	  .mount_options = "rsize=1048576,wsize=65536" },
	{ "-", "READs that return less than was written",
	  .answer = less_than_written, .work = read_file },
	{ "R8166-3.5.2-1 R8166-3.4.5.2-3 R8166-3.4.5-2 R8166-3.4.2-1", "WRITE", .work = write_file },
	{ "R8166-3.4.5.2-1 R8166-3.4.5.2-3", "a Read chunk without roundup",
	  .answer = exact_write, .work = write_and_read_unaligned },
	{ "R8166-3.4.6.2-1", "a Write chunk without room for roundup",
	  .answer = exact_read, .work = write_and_read_unaligned },
	{ "R8166-3.5.3-2 R8166-3.5.3-3", "a Long Call",
	  .answer = long_call, .work = set_acl, .params = &params_1k },
	{ "R8166-3.5.3-4", "a Long Reply", .answer = long_reply, .work = list_directory },
	{ "R8166-4.3.3-4", "a Reply chunk that is returned unused",
	  .answer = unused_reply_chunk, .work = list_empty },
	{ "R8166-2.3.2-2", "a Reply longer than a Receive",
	  .answer = reply_too_long, .work = read_file, .min_connections = 2 },
	{ "R8166-4.5-1", "Replies too short for a header",
	  .answer = invalid_length, .work = read_file },
	{ "R8166-4.5-3 R8166-4.2.4-4", "malformed chunk lists",
	  .answer = invalid_lists, .work = read_file },
	{ "R8166-4.5-3 R8166-3.4.6.1-1", "a Write chunk that was not offered",
	  .answer = invalid_chunk, .work = read_file },
	{ "R8166-4.2.1-1", "different XIDs in header and payload",
	  .answer = invalid_xid, .work = read_file },
	{ "R8166-4.5-3", "another version", .answer = invalid_version, .work = read_file },
	{ "R8166-4.6.1-3", "RDMA_MSGP", .answer = invalid_msgp, .work = read_file },
	{ "R8166-4.5-3", "unknown procedures", .answer = invalid_procedure, .work = read_file },
	{ "R8166-4.6.2-2", "RDMA_DONE", .answer = invalid_done, .work = read_file },
	{ "R8166-4.5-8", "malformed RDMA_ERRORs", .answer = invalid_error, .work = read_file },
	{ "R8166-3.3.1-9 R8166-4.5-3", "many invalid Replies",
	  .answer = invalid_many, .work = read_file },
	{ "-", "Replies after which SUNRPC retries", .answer = garbage_args, .work = read_file },
	{ "R8166-4.5-7", "ERR_CHUNK", .answer = refuse_chunk, .work = read_file,
	  .work_errno = EIO },
	{ "R8166-4.5-7", "ERR_VERS", .answer = refuse_version, .work = read_file,
	  .work_errno = EIO },
	{ "R8166-4.5-8", "an unsolicited RDMA_ERROR",
	  .answer = unsolicited_error, .work = read_file },
};

const struct group group_replies = {
	.name = "replies", .about = "a server with invalid and unusual Replies",
	.tests = tests, .n = COUNT(tests),
};
