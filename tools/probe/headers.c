// SPDX-License-Identifier: GPL-2.0
/*
 * A client with valid and invalid transport headers.
 */

#include <string.h>
#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"

#define UNKNOWN_PROC	77

static bool t_null(struct conn *c)
{
	return alive(c);
}

static bool t_private(struct conn *c)
{
	static const uint8_t start[] = { PRIVATE_ID, 1 };
	const uint8_t flags = c->peer_private[sizeof(start)];

	if (c->peer_private_len < PRIVATE_MSG_LEN || memcmp(c->peer_private, start, sizeof(start)))
		return fail("no private message in %d bytes", c->peer_private_len);
	return flags & ~REMOTE_INVALIDATE ? fail("Reserved flags are set: %x", flags) : true;
}

static bool t_credits(struct conn *c)
{
	struct enc e;
	struct reply r;

	enc_null_call(&e, new_xid());
	if (!exchange(c, &e, &r))
		return false;
	return get_word(r.p, HDR_CREDITS) ? true : fail("no credits granted");
}

static bool t_version(struct conn *c)
{
	static const uint32_t versions[] = { 0, 2, 0xffffffff };
	unsigned int i;

	for (i = 0; i < COUNT(versions); i++) {
		const uint32_t xid = new_xid();
		struct reply r;
		struct enc e;

		enc_null_call(&e, xid);
		put_word(&e, HDR_VERS, versions[i]);
		if (!exchange(c, &e, &r) || !is_err_vers(&r, xid, versions[i]) || !alive(c))
			return false;
	}
	return true;
}

/* Not zero: some providers cannot send an empty message. */
static bool t_short(struct conn *c)
{
	static const unsigned int lengths[] = { 1, 4, 8, 12, 15, 16, 20, 24, 27 };
	unsigned int i;

	for (i = 0; i < COUNT(lengths); i++) {
		struct enc e = { .len = 0 };

		enc_call_hdr(&e, new_xid(), RDMA_MSG);
		enc_no_chunks(&e);
		e.len = lengths[i];
		if (!ignored(c, &e))
			return fail("%u bytes: %s", lengths[i], probe.reason);
	}
	return true;
}

/* A NULL Call behind the header of another transport procedure. */
static void enc_by_procedure(struct enc *e, uint32_t xid, uint32_t proc)
{
	e->len = 0;
	enc_call_hdr(e, xid, proc);
	if (proc == RDMA_MSGP) {
		enc_u32(e, 8);		/* alignment */
		enc_u32(e, 0);		/* threshold */
	}
	if (proc == RDMA_ERROR)
		enc_u32(e, ERR_CHUNK);
	enc_no_chunks(e);
	enc_nfs4_call(e, xid, NFSPROC4_NULL);
}

static bool t_msgp(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e;

	enc_by_procedure(&e, xid, RDMA_MSGP);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_unknown_procedure(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e;

	enc_by_procedure(&e, xid, UNKNOWN_PROC);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_done(struct conn *c)
{
	struct enc e;

	enc_by_procedure(&e, new_xid(), RDMA_DONE);
	return ignored(c, &e);
}

static bool t_error(struct conn *c)
{
	struct enc e;

	enc_by_procedure(&e, new_xid(), RDMA_ERROR);
	return ignored(c, &e);
}

/*
 * An RDMA_NOMSG without a Position-zero chunk: without any chunk, or with one of another kind. It
 * is invalid even if an RPC Call follows the header.
 */
static bool t_nomsg_empty(struct conn *c)
{
	enum { NO_CHUNK, READ_CHUNK, WRITE_CHUNK, REPLY_CHUNK, KINDS };
	const struct segment room = area_segment(c, 0, 4096);
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		const uint32_t xid = new_xid();
		struct enc e = { .len = 0 }, rpc = { .len = 0 };

		enc_nfs4_call(&rpc, xid, NFSPROC4_NULL);
		memcpy(c->area, rpc.buf, rpc.len);
		enc_call_hdr(&e, xid, RDMA_NOMSG);
		if (kind == READ_CHUNK)
			enc_rseg(&e, rpc.len, room.handle, rpc.len, room.offset);
		enc_list_end(&e);
		if (kind == WRITE_CHUNK)
			enc_wchunk(&e, room.handle, room.length, room.offset);
		enc_list_end(&e);
		if (kind == REPLY_CHUNK)
			enc_wchunk(&e, room.handle, room.length, room.offset);
		else
			enc_no_reply_chunk(&e);
		enc_bytes(&e, rpc.buf, rpc.len);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return fail("kind %d: %s", kind, probe.reason);
	}
	return true;
}

enum placement { INLINE, IN_CHUNK };

/* Sends a Call whose XID differs from that in the header. Returns whether it is refused. */
static bool send_two_xids(struct conn *c, enum placement where, bool *is_refused)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	struct reply r;

	enc_nfs4_call(&rpc, xid ^ 0x80000000, NFSPROC4_NULL);
	memcpy(c->area, rpc.buf, rpc.len);
	enc_call_hdr(&e, xid, where == IN_CHUNK ? RDMA_NOMSG : RDMA_MSG);
	if (where == IN_CHUNK)
		enc_rseg(&e, 0, c->area_mr->rkey, rpc.len, area_addr(c, 0));
	enc_no_chunks(&e);
	if (where == INLINE)
		enc_bytes(&e, rpc.buf, rpc.len);
	if (!exchange(c, &e, &r))
		return false;
	*is_refused = get_word(r.p, HDR_PROC) == RDMA_ERROR;
	return (!*is_refused || is_error(&r, xid, ERR_CHUNK)) && alive(c);
}

/* A transport may ignore the XID in the payload. */
static bool t_xid(struct conn *c)
{
	bool is_refused;

	return send_two_xids(c, INLINE, &is_refused);
}

/* A transport that compares the XIDs of inline Calls has to compare those of Long Calls. */
static bool t_xid_long_call(struct conn *c)
{
	bool compares_inline, compares_chunk;

	if (!send_two_xids(c, INLINE, &compares_inline) ||
	    !send_two_xids(c, IN_CHUNK, &compares_chunk))
		return false;
	return compares_chunk || !compares_inline ? true : fail("XIDs compared if inline only");
}

enum list { READ_LIST, WRITE_LIST, REPLY_CHUNK, LISTS };

/* A valid Call with one chunk, but for the discriminator of that chunk. */
static void enc_discriminator(struct conn *c, struct enc *e, uint32_t xid, enum list list,
			      uint32_t discriminator)
{
	const struct segment source = area_segment(c, 0, 1000), sink = area_segment(c, 0, 8192);

	e->len = 0;
	switch (list) {
	case READ_LIST:
		enc_write_call(e, xid, &source);
		break;
	case WRITE_LIST:
		enc_read_call(e, xid, &sink, 1000);
		break;
	default:
		enc_reply_chunk_hdr(e, xid, &sink);
		enc_compound(e, xid, 2);
		enc_lookup(e, "probe");
		enc_read(e, 0, 5000);
	}
	put_word(e, HDR_LISTS + list, discriminator);
}

static bool t_discriminators(struct conn *c)
{
	static const uint32_t invalid[] = { 2, 5, 0x01000000, 0xffffffff };
	struct enc e;
	struct reply r;
	unsigned int i, at;
	enum list list;
	uint32_t xid;

	for (list = 0; list < LISTS; list++) {
		xid = new_xid();
		enc_discriminator(c, &e, xid, list, 1);
		if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
			return fail("list %u, discriminator 1: %s", list, probe.reason);
		for (i = 0; i < COUNT(invalid); i++) {
			xid = new_xid();
			enc_discriminator(c, &e, xid, list, invalid[i]);
			if (!refused(c, &e, xid, ERR_CHUNK))
				return fail("list %u, discriminator %x: %s", list, invalid[i],
					    probe.reason);
		}
	}
	return true;
}

/* A Write chunk or Reply chunk that claims to have this many segments. */
static bool count_refused(struct conn *c, enum list list, uint32_t count)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	if (list == REPLY_CHUNK)
		enc_list_end(&e);
	enc_chunk_head(&e, count);
	enc_seg(&e, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_no_chunks(&e);
	enc_nfs4_call(&e, xid, NFSPROC4_NULL);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_counts(struct conn *c)
{
	static const uint32_t counts[] = { 0x7fffffff, 0x10000000, 0xffffffff, 300 };
	unsigned int i;

	for (i = 0; i < COUNT(counts); i++)
		if (!count_refused(c, WRITE_LIST, counts[i]) ||
		    !count_refused(c, REPLY_CHUNK, counts[i]))
			return false;
	return true;
}

static const struct test tests[] = {
	{ "R8166-3.5.1-1 R8166-4.2.4-1 R8166-4.2.1-1", "a Call without chunks", t_null },
	{ "R8166-3.3.3-1 R8797-1-1", "a Call without private data", t_null,
	  .params = &params_no_private },
	{ "R8797-4-3 CM0-3.1-1 CM0-3.1-2 CM0-3.1.1-2", "private data of the server", t_private },
	{ "R8166-3.3.1-2 R8166-3.3.1-4", "credits", t_credits },
	{ "R8166-4.5.1-1 R8166-4.5-4 R8166-4.5-5 R8166-4.5-6", "another version", t_version },
	{ "R8166-4.5-1", "messages too short for a header", t_short },
	{ "R8166-4.6.1-2", "RDMA_MSGP", t_msgp },
	{ "R8166-4.5.2-1 R8166-4.5-2", "an unknown procedure", t_unknown_procedure },
	{ "R8166-4.6.2-2", "RDMA_DONE", t_done },
	{ "R8166-4.2.4-5", "RDMA_ERROR", t_error },
	{ "R8166-4.2.4-2 R8166-4.5.2-1", "RDMA_NOMSG without a Position-zero chunk",
	  t_nomsg_empty },
	{ "R8166-4.2.1-2", "different XIDs in header and payload", t_xid },
	{ "R8166-4.2.1-2", "different XIDs in a Long Call", t_xid_long_call },
	{ "R8166-4.1.2-6", "discriminators other than 0 and 1", t_discriminators },
	{ "R8166-4.5.2-1 R8166-4.5-2", "more segments than the message holds", t_counts },
	{ "R8166-4.5-2", "the server still answers", t_null },
};

const struct group group_headers = {
	.name = "headers", .about = "a client with valid and invalid headers",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
