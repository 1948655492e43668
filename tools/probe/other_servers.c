// SPDX-License-Identifier: GPL-2.0
/*
 * A server that replies in ways that no RFC describes, but whose meaning is clear. A case names the
 * implementation that is known to do so. The client must not reconnect.
 */

#include <errno.h>
#include <string.h>
#include "answers.h"
#include "group.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

enum { NFS3ERR_ACCES = 13, NFS3ERR_INVAL = 22 };

static const unsigned int lengths[] = { 1, 2, 3, 5, 6, 7, 201 };

static int read_odd(void)
{
	unsigned int i;
	int status = 0;

	for (i = 0; i < COUNT(lengths) && !status; i++)
		status = read_some(0, lengths[i]);
	return status;
}

static bool mispadded(struct conn *c, struct call *call)
{
	unsigned int data;
	struct enc e;

	if (!make_mispadded_reply(c, call, &e, &data))
		return false;
	serving.call_seen |= data == lengths[COUNT(lengths) - 1];
	return send_msg(c, &e);
}

/* The Reply chunk has room for two more bytes, but not for whole words. */
static bool unaligned_reply_chunk(struct conn *c, struct call *call)
{
	struct enc e;

	if (!is_listing(call))
		return answer_correctly(c, call);
	if (!make_longer_reply(c, call, &e, 2))
		return false;
	serving.call_seen |= get_word(e.buf, HDR_PROC) == RDMA_NOMSG;
	return send_msg(c, &e);
}

/* The header of a Reply whose Write chunk is unused, and has neither handles nor offsets. */
static void enc_zeroed(struct enc *e, const struct call *call)
{
	unsigned int i;

	e->len = 0;
	enc_hdr(e, call->xid, RPCRDMA_VERSION, serving.grant, RDMA_MSG);
	enc_list_end(e);
	enc_chunk_head(e, call->write.n + 1);
	for (i = 0; i <= call->write.n; i++)
		enc_seg(e, 0, 0, 0);
	enc_list_end(e);
	enc_no_reply_chunk(e);
}

static bool zeroed_segments(struct conn *c, struct call *call)
{
	struct enc e;

	if (!is_read(call) || !call->write.n)
		return answer_correctly(c, call);
	serving.call_seen = true;
	enc_zeroed(&e, call);
	enc_rpc_reply(&e, call->xid, ACCEPT_SUCCESS);
	enc_u32(&e, NFS3ERR_ACCES);
	enc_u32(&e, 0);			/* no attributes */
	return send_msg(c, &e);
}

/* The client must not send a Call again that has such a Reply. */
static bool no_payload(struct conn *c, struct call *call, unsigned int words)
{
	static uint32_t answered;
	struct enc e = { .len = 0 };

	if (!is_read(call))
		return answer_correctly(c, call);
	if (serving.call_seen && call->xid == answered)
		return fail("xid %x is sent again", answered);
	serving.call_seen = true;
	answered = call->xid;
	enc_zeroed(&e, call);
	if (words)
		enc_u32(&e, call->xid);
	return send_msg(c, &e);
}

static bool header_alone(struct conn *c, struct call *call)
{
	return no_payload(c, call, 0);
}

static bool xid_alone(struct conn *c, struct call *call)
{
	return no_payload(c, call, 1);
}

/* Too long for a Send, and not a multiple of four. */
static const unsigned int unaligned[] = { 4097, 4098, 4099, 65535, 1048575 };

static int read_long_odd(void)
{
	unsigned int i;
	int status = 0;

	for (i = 0; i < COUNT(unaligned) && !status; i++)
		status = read_some(0, unaligned[i]);
	return status;
}

/* Writes bytes behind the first @at ones of a chunk, which have room for them. */
static bool write_behind(struct conn *c, const struct chunk *chunk, unsigned int at, unsigned int n)
{
	unsigned int i, part;

	memset(c->area, 0xee, n);
	for (i = 0; i < chunk->n && n; i++) {
		struct segment s = chunk->seg[i];

		if (at >= s.length) {
			at -= s.length;
			continue;
		}
		part = s.length - at < n ? s.length - at : n;
		s.offset += at;
		s.length = part;
		if (rdma(c, IBV_WR_RDMA_WRITE, &s, 0))
			return fail("RDMA Write of the roundup failed");
		n -= part;
		at = 0;
	}
	return n ? fail("no room for %u bytes of roundup", n) : true;
}

/*
 * The server needs room for the roundup of the data, and refuses the READ otherwise. With
 * @written, it writes the roundup and counts it.
 */
static bool rounded_up(struct conn *c, struct call *call, bool written)
{
	unsigned int count, room;
	struct enc e;

	if (!is_read(call) || !call->write.n)
		return answer_correctly(c, call);
	count = get_word(call->rpc, call->len / 4 - 1);
	room = chunk_len(&call->write);
	if (room < xdr_align(count)) {
		e.len = 0;
		enc_zeroed(&e, call);
		enc_rpc_reply(&e, call->xid, ACCEPT_SUCCESS);
		enc_u32(&e, NFS3ERR_INVAL);
		enc_u32(&e, 0);			/* no attributes */
		return send_msg(c, &e);
	}
	serving.call_seen |= xdr_pad(count) != 0;
	if (!make_reply(c, call, &e))
		return false;
	count = read_result_len(&e, call);
	if (written && count) {
		if (!write_behind(c, &call->write, count, xdr_pad(count)))
			return false;
		set_read_result(&e, call, xdr_align(count), count);
	}
	return send_msg(c, &e);
}

static bool needs_roundup(struct conn *c, struct call *call)
{
	return rounded_up(c, call, false);
}

static bool writes_roundup(struct conn *c, struct call *call)
{
	return rounded_up(c, call, true);
}

static const struct test tests[] = {
	{ "-", "NFSv3 READs with length modulo 4 bytes of padding (ntirpc 6.3)",
	  .answer = mispadded, .work = read_odd },
	{ "-", "NFSv4.0 READs with length modulo 4 bytes of padding (ntirpc 6.3)",
	  .mount = mount_v40, .answer = mispadded, .work = read_odd },
	{ "-", "a Reply chunk with an odd length",
	  .answer = unaligned_reply_chunk, .work = list_directory },
	{ "-", "NFSv3 READs that need room for the roundup in the Write chunk (illumos)",
	  .params = &params_no_private, .answer = needs_roundup, .work = read_long_odd },
	{ "-", "NFSv3 READs with the roundup in the Write chunk (illumos)",
	  .params = &params_no_private, .answer = writes_roundup, .work = read_long_odd },
	{ "R8166-3.4.6-2", "an unused Write chunk of zeroed segments",
	  .answer = zeroed_segments, .work = read_file, .work_errno = EACCES },
	{ "-", "a Reply without an RPC message (ntirpc)",
	  .answer = header_alone, .work = read_file, .work_errno = EIO },
	{ "-", "a Reply with one word of an RPC message",
	  .answer = xid_alone, .work = read_file, .work_errno = EIO },
};

const struct group group_other_servers = {
	.name = "other_servers", .about = "a server that replies as other implementations do",
	.tests = tests, .n = COUNT(tests),
};
