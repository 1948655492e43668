// SPDX-License-Identifier: GPL-2.0
/*
 * A server that accesses the memory of the kernel's client: what the client exposes, with which
 * rights, and for how long. A denied access ends the connection. The client then sends the Call
 * again on another one, and its data is right.
 */

#include <string.h>
#include "answers.h"
#include "exposed.h"
#include "group.h"
#include "pattern.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

#define WRITE_OFFSET	77	/* of write_file()'s pattern */

/* The case is about the first Call of this kind. */
static bool is_first(const struct call *call, bool (*kind)(const struct call *call))
{
	static unsigned int last;

	if (!kind(call) || !first_in_case(&last))
		return false;
	serving.call_seen = true;
	return true;
}

static bool has_chunk(const struct chunk *chunk)
{
	return chunk->n ? true : fail("the Call has no chunk");
}

/* RDMA Read or RDMA Write of all of a segment. */
static int access_segment(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s)
{
	if (s->length > AREA)
		return -1;
	memset(c->area, 0x5a, s->length);
	return rdma(c, opcode, s, 0);
}

/*
 * Checks that an access is denied, and leaves the Call unanswered. If the access is not denied,
 * the case fails even if the connection ends: serve_one() forgives failures on such a
 * connection, so call_seen is cleared.
 */
bool denied(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s, int64_t by,
	    unsigned int len)
{
	memset(c->area, 0x5a, len);
	serving.call_seen = access_denied(c, opcode, s, by, len);
	return serving.call_seen;
}

/*
 * The same for the start of a segment, once the client has ended its exposure: until then the access
 * is repeated. It writes what the client has there. If @next, the next Call shows that the RPC has
 * ended, after which no access may succeed.
 */
bool denied_soon(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s, bool next)
{
	const struct segment start = { .handle = s->handle, .length = 4, .offset = s->offset };
	const int64_t begin = now_ms();
	bool ended = false;
	int status = 0;

	serving.call_seen = false;
	/* An RDMA Write over iWARP completes in any case, and cannot be repeated. */
	if (is_iwarp(c))
		sleep_ms(SOON_MS);
	while (!ended && now_ms() - begin < PATIENCE_MS * probe.time_factor) {
		ended = next && queued_call(c, 0);
		if (disconnected(c))
			return fail("disconnected before the access");
		fill_pattern(c->area, 0, 4);
		status = rdma(c, opcode, &start, 0);
		if (status || is_iwarp(c))
			break;
		sleep_ms(50);
	}
	serving.call_seen = is_denial(c, opcode, status);
	return serving.call_seen;
}

static bool read_twice(struct conn *c, struct call *call)
{
	const struct segment *s = call->reads.seg;
	int i;

	if (!is_first(call, is_write))
		return answer_correctly(c, call);
	if (!has_chunk(&call->reads))
		return false;
	for (i = 0; i < 2; i++) {
		if (access_segment(c, IBV_WR_RDMA_READ, s))
			return fail("RDMA Read %d of the exposed segment failed", i);
		if (!check_pattern("exposed data", c->area, WRITE_OFFSET, s->length))
			return false;
		sleep_ms(SOON_MS);
	}
	return answer_correctly(c, call);
}

/* The client has to end the exposure before the consumer gets the memory back. */
static bool read_after(struct conn *c, struct call *call)
{
	if (!is_first(call, is_write))
		return answer_correctly(c, call);
	if (!has_chunk(&call->reads) || !answer_correctly(c, call))
		return false;
	return denied_soon(c, IBV_WR_RDMA_READ, call->reads.seg, true);
}

static bool write_after(struct conn *c, struct call *call)
{
	if (!is_first(call, is_read))
		return answer_correctly(c, call);
	if (!has_chunk(&call->write) || !answer_correctly(c, call))
		return false;
	return denied_soon(c, IBV_WR_RDMA_WRITE, call->write.seg, true);
}

static bool write_to_source(struct conn *c, struct call *call)
{
	if (!is_first(call, is_write))
		return answer_correctly(c, call);
	return has_chunk(&call->reads) && denied(c, IBV_WR_RDMA_WRITE, call->reads.seg, 0, 4);
}

static bool read_from_sink(struct conn *c, struct call *call)
{
	if (!is_first(call, is_read))
		return answer_correctly(c, call);
	/* siw_qp_sq_proc_tx() */
	if (is_iwarp(c))
		return skip("siw does not check the right to read when it answers an RDMA Read");
	return has_chunk(&call->write) && denied(c, IBV_WR_RDMA_READ, call->write.seg, 0, 4);
}

static bool write_behind(struct conn *c, struct call *call)
{
	const struct segment *last;

	if (!is_first(call, is_read))
		return answer_correctly(c, call);
	if (!has_chunk(&call->write))
		return false;
	last = &call->write.seg[call->write.n - 1];
	return denied(c, IBV_WR_RDMA_WRITE, last, last->length, 1);
}

static bool write_before(struct conn *c, struct call *call)
{
	if (!is_first(call, is_read))
		return answer_correctly(c, call);
	return has_chunk(&call->write) && denied(c, IBV_WR_RDMA_WRITE, call->write.seg, -1, 1);
}

enum side { BEFORE, BEHIND };

/* Accesses the byte next to the chunk, on the same page. */
static bool access_beside(struct conn *c, struct call *call, enum side side)
{
	const bool out = is_write(call);
	const struct chunk *chunk = out ? &call->reads : &call->write;
	const struct segment *s = &chunk->seg[side == BEHIND && chunk->n ? chunk->n - 1 : 0];
	const int64_t by = side == BEHIND ? (int64_t)s->length : -1;

	if (!has_chunk(chunk))
		return false;
	if (!((s->offset + (side == BEHIND ? s->length : 0)) & 4095))
		return fail("%u bytes at %llx end at a page boundary", s->length,
			    (unsigned long long)s->offset);
	return denied(c, out ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, s, by, 1);
}

static bool write_behind_unaligned(struct conn *c, struct call *call)
{
	return is_first(call, is_read) ? access_beside(c, call, BEHIND) : answer_correctly(c, call);
}

static bool write_before_unaligned(struct conn *c, struct call *call)
{
	return is_first(call, is_read) ? access_beside(c, call, BEFORE) : answer_correctly(c, call);
}

static bool read_behind_unaligned(struct conn *c, struct call *call)
{
	return is_first(call, is_write) ? access_beside(c, call, BEHIND) :
		answer_correctly(c, call);
}

static bool read_before_unaligned(struct conn *c, struct call *call)
{
	return is_first(call, is_write) ? access_beside(c, call, BEFORE) :
		answer_correctly(c, call);
}

/*
 * Fails if a server can predict the next exposure. The last byte of a handle is the owner's to
 * choose, the others name the MR. Predictable are: handles that differ by a constant step; an MR
 * that comes again with a constant step of its last byte; pages that come again.
 */
static bool predict_handles(struct conn *c, struct call *call)
{
	static struct segment past[128];
	static unsigned int n, same_step, same_mr, same_page, key_steps[256];
	static uint32_t step;
	const struct segment *s = call->reads.n ? call->reads.seg : call->write.seg;
	bool mr = false, page = false;
	unsigned int i, most = 0;

	if (!call->reads.n && !call->write.n)
		return answer_correctly(c, call);
	/* From the most recent one on. */
	for (i = 1; i <= n && i <= COUNT(past); i++) {
		const struct segment *p = &past[(n - i) % COUNT(past)];

		if (!mr && p->handle >> 8 == s->handle >> 8)
			key_steps[(s->handle - p->handle) & 0xff]++;
		mr |= p->handle >> 8 == s->handle >> 8;
		page |= p->offset >> 12 == s->offset >> 12;
	}
	if (n) {
		const uint32_t before = past[(n - 1) % COUNT(past)].handle;

		same_step += s->handle - before == step;
		step = s->handle - before;
	}
	same_mr += mr;
	same_page += page;
	past[n++ % COUNT(past)] = *s;
	for (i = 0; i < COUNT(key_steps); i++)
		most = key_steps[i] > most ? key_steps[i] : most;
	serving.call_seen = n >= 100;
	if (serving.call_seen && (same_step > n / 2 || (same_mr >= n / 4 && most > same_mr / 2) ||
				  same_page > n / 2))
		return fail("of %u handles, %u differ by the same step as the last two; %u are of a"
			    " recent MR, %u of these by the same step; %u are at a recent page",
			    n, same_step, same_mr, most, same_page);
	return answer_correctly(c, call);
}

static int use_often(void)
{
	return write_and_read(MOUNTPOINT "/often", 60, 20000, 40000);
}

/* Writes to all of the Write chunk, and then makes the Reply. */
static bool overwrite_sink(struct conn *c, struct call *call,
			   bool (*make)(struct conn *c, struct call *call, struct enc *e))
{
	const struct segment *s = call->write.seg;
	struct enc e;

	if (!is_first(call, is_read))
		return answer_correctly(c, call);
	if (!has_chunk(&call->write))
		return false;
	for (; s < call->write.seg + call->write.n; s++)
		if (access_segment(c, IBV_WR_RDMA_WRITE, s))
			return fail("RDMA Write to the Write chunk failed");
	return make(c, call, &e) && send_msg(c, &e);
}

/* The Reply returns less than was written. The reader must not see the rest. */
static bool write_more_than_returned(struct conn *c, struct call *call)
{
	return overwrite_sink(c, call, make_reply);
}

/* The data is inline, and the Write chunk is returned unused. */
static bool write_to_unused(struct conn *c, struct call *call)
{
	return overwrite_sink(c, call, make_inline_reply);
}

/* Immediate data consumes a Receive and leaves its buffer, which has an earlier Reply, as it is. */
static bool write_immediate(struct conn *c, struct call *call)
{
	if (!is_first(call, is_read))
		return answer_correctly(c, call);
	if (is_iwarp(c))
		return skip("iWARP has no immediate data");
	if (!has_chunk(&call->write))
		return false;
	access_segment(c, IBV_WR_RDMA_WRITE_WITH_IMM, call->write.seg);
	serving.call_seen = wait_disconnected(c, PATIENCE_MS);
	return serving.call_seen ? true : fail("the client keeps a connection with immediate data");
}

static const struct test tests[] = {
	{ "R8166-2.3.2-4 R8166-3.4.5.1-2", "a source can be read until the Reply",
	  .answer = read_twice, .work = write_file },
	{ "R8166-4.4.1-1 R8166-8.1.3-2", "a source cannot be read after the Reply",
	  .answer = read_after, .work = write_file, .min_connections = 1 },
	{ "R8166-4.4.1-1 R8166-8.1.3-2", "a sink cannot be written after the Reply",
	  .answer = write_after, .work = read_file, .min_connections = 1 },
	{ "R8166-8.1.3-1", "a source cannot be written",
	  .answer = write_to_source, .work = write_file, .min_connections = 2 },
	{ "R8166-8.1.3-1", "a sink cannot be read",
	  .answer = read_from_sink, .work = read_file, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing behind a segment can be written",
	  .answer = write_behind, .work = read_file, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing before a segment can be written",
	  .answer = write_before, .work = read_file, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing behind a sink can be written, on its last page",
	  .answer = write_behind_unaligned, .work = read_unaligned, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing before a sink can be written, on its first page",
	  .answer = write_before_unaligned, .work = read_unaligned, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing behind a source can be read, on its last page",
	  .answer = read_behind_unaligned, .work = write_unaligned, .min_connections = 2 },
	{ "R8166-8.1-1", "nothing before a source can be read, on its first page",
	  .answer = read_before_unaligned, .work = write_unaligned, .min_connections = 2 },
	{ "R8166-8.1.2-1", "handles are unpredictable",
	  .answer = predict_handles, .work = use_often },
	{ "R8166-4.4.1-3 R8166-8.1.3-3", "a killed task's memory cannot be written",
	  .answer = write_for_killed, .work = list_and_be_killed, .min_connections = 1 },
	{ "R8166-4.4.1-3 RI3-3.2-3",
	  "a killed task's memory cannot be written, if its Reply invalidates another's",
	  .answer = invalidate_for_killed, .work = list_beside_writer,
	  .params = &params_remote_inv, .min_connections = 2 },
	{ "R8166-4.3.2.2-3", "more is written than is returned",
	  .answer = write_more_than_returned, .work = read_tail },
	{ "R8166-4.3.2.2-3", "a Write chunk is written, and returned unused",
	  .answer = write_to_unused, .work = read_tail },
	{ "-", "an RDMA Write With Immediate to a Write chunk",
	  .answer = write_immediate, .work = read_file, .min_connections = 2 },
};

const struct group group_exposed = {
	.name = "exposed", .about = "a server that accesses its client's memory",
	.tests = tests, .n = COUNT(tests),
};
