// SPDX-License-Identifier: GPL-2.0
/*
 * A client that splits data items: one part is inline, the other in a Read chunk.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "answers.h"
#include "expect.h"
#include "file_io.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"

#define RPCSEC_GSS	6	/* RFC 2203 */
#define GSS_CRED_LEN	20	/* bytes of the credential, without a handle */
#define SATTR3_WORDS	6	/* of a sattr3 without attributes */

static bool remove_file(struct conn *c, const char *name)
{
	struct enc e;

	enc_compound_call(&e, new_xid(), 1);
	enc_u32(&e, REMOVE);
	enc_string(&e, name);
	return compound_succeeds(c, &e, 1);
}

/* Checks that the link has this text, and no other contents of the server's memory. */
static bool link_text_is(struct conn *c, const char *name, const char *text)
{
	const unsigned int len = strlen(text);
	const char *got;
	unsigned int at;
	struct reply r;
	struct enc e;

	enc_compound_call(&e, new_xid(), 2);
	enc_lookup(&e, name);
	enc_u32(&e, READLINK);
	if (!exchange(c, &e, &r) || !reply_body(&r, get_word(e.buf, HDR_XID), &at) ||
	    !compound_ok(r.p + at, 2))
		return false;
	at += COMPOUND_RESULTS_AT + (COMPOUND_PREFIX_OPS + 2) * OP_RESULT_LEN;
	got = (const char *)r.p + at + 4;
	if (get_word(r.p + at, 0) != len)
		return fail("a link of %u bytes, expected %u", get_word(r.p + at, 0), len);
	if (memcmp(got, text, len))
		return fail("the link is \"%.16s...%.16s\"", got, got + len - 16);
	return true;
}

/* A name that no other case uses. */
static void new_link_name(char name[64])
{
	static unsigned int links;

	snprintf(name, 64, "split-%d-%u", getpid(), links++);
}

/*
 * A SYMLINK with the first @in_chunk bytes of its text in a Read chunk, and the others inline behind
 * it. The Read chunk has no roundup.
 */
static bool enc_symlink(struct conn *c, struct enc *e, const char *name, const char *text,
			unsigned int in_chunk)
{
	const unsigned int size = strlen(text);
	const uint32_t xid = new_xid();
	struct enc rpc = { .len = 0 };
	uint8_t handle[FILE_HANDLE_MAX];
	unsigned int i, position, len = get_file_handle(c, NULL, handle);

	if (!len)
		return false;
	memcpy(c->area, text, in_chunk);
	enc_rpc_call(&rpc, xid, 3, NFS3_SYMLINK);
	enc_opaque(&rpc, handle, len);
	enc_string(&rpc, name);
	for (i = 0; i < SATTR3_WORDS; i++)
		enc_u32(&rpc, 0);
	enc_u32(&rpc, size);
	position = rpc.len;
	enc_bytes(&rpc, text + in_chunk, size - in_chunk);
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_rseg(e, position, c->area_mr->rkey, in_chunk, area_addr(c, 0));
	enc_no_chunks(e);
	enc_bytes(e, rpc.buf, rpc.len);
	return true;
}

static bool symlink_succeeded(const struct reply *r, uint32_t xid)
{
	unsigned int at;

	if (!reply_body(r, xid, &at))
		return false;
	if (get_word(r->p + at, RPC_ACCEPT_STAT) || get_word(r->p + at, NFS_STATUS))
		return fail("accept_stat %u, status %u", get_word(r->p + at, RPC_ACCEPT_STAT),
			    get_word(r->p + at, NFS_STATUS));
	return true;
}

/* A SYMLINK whose text is split. The server may refuse it. */
static bool make_split_link(struct conn *c, unsigned int in_chunk, unsigned int size)
{
	char name[64], text[4096];
	unsigned int i;
	struct reply r;
	struct enc e;
	uint32_t xid;

	new_link_name(name);
	for (i = 0; i < size; i++)
		text[i] = 'a' + i % 26;
	text[size] = 0;
	if (!enc_symlink(c, &e, name, text, in_chunk) || !exchange(c, &e, &r))
		return false;
	xid = get_word(e.buf, HDR_XID);
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	return symlink_succeeded(&r, xid) && link_text_is(c, name, text) && remove_file(c, name);
}

static bool t_symlink(struct conn *c)
{
	unsigned int round;

	for (round = 0; round < 8; round++) {
		/* These pages of the server then have contents that may leak. */
		if (!write_item(c, 0, 16384))
			return false;
		if (!make_split_link(c, 4, 1000) || !make_split_link(c, 996, 1000))
			return false;
	}
	return true;
}

/*
 * A SYMLINK that is sent again. The client sends no roundup, and the server must not take it from
 * earlier contents of its page: nfsd's duplicate reply cache compares checksums of Calls that
 * include the roundup, and would not recognize the Call.
 */
static bool t_sent_again(struct conn *c)
{
	static const char text[] = "12345";
	unsigned int round, i;
	struct reply r;
	char name[64];
	struct enc e;

	for (round = 0; round < 8; round++) {
		new_link_name(name);
		if (!enc_symlink(c, &e, name, text, strlen(text)))
			return false;
		for (i = 0; i < 2; i++) {
			/* New contents of the server's pages, and then the text again. */
			if (!write_item(c, 0, 16384))
				return false;
			memcpy(c->area, text, strlen(text));
			if (!exchange(c, &e, &r))
				return false;
			if (!symlink_succeeded(&r, get_word(e.buf, HDR_XID)))
				return fail("Call %u of 2: %s", i + 1, probe.reason);
		}
		if (!link_text_is(c, name, text) || !remove_file(c, name))
			return false;
	}
	return true;
}

enum rest { INLINE, IN_POSITION_ZERO_CHUNK };

/* A part of a Call: @len bytes from byte @from on. */
struct part {
	unsigned int from, len;
};

/* Sends the Call @rpc with @part of it in a Read chunk. Fails unless the server refuses the Call. */
static bool part_refused(struct conn *c, const struct enc *rpc, struct part part, enum rest where)
{
	const unsigned int end = part.from + part.len;
	const uint32_t xid = get_word(rpc->buf, 0);
	struct enc e = { .len = 0 }, rest = { .len = 0 };

	memcpy(c->area, rpc->buf + part.from, part.len);
	enc_bytes(&rest, rpc->buf, part.from);
	enc_bytes(&rest, rpc->buf + end, rpc->len - end);
	enc_call_hdr(&e, xid, where == INLINE ? RDMA_MSG : RDMA_NOMSG);
	if (where == IN_POSITION_ZERO_CHUNK) {
		memcpy(c->area + AREA / 2, rest.buf, rest.len);
		enc_rseg(&e, 0, c->area_mr->rkey, rest.len, area_addr(c, AREA / 2));
	}
	enc_rseg(&e, part.from, c->area_mr->rkey, part.len, area_addr(c, 0));
	enc_no_chunks(&e);
	if (where == INLINE)
		enc_bytes(&e, rest.buf, rest.len);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return fail("bytes %u to %u: %s", part.from, end - 1, probe.reason);
	return true;
}

/*
 * A Call with some words of its header in a Read chunk: message type, procedure, flavor, length
 * or contents of the credential, and the verifier. None of them may be reduced.
 */
static bool split_header_refused(struct conn *c, enum rest where)
{
	static const struct part parts[] = {
		{ 4, 4 }, { 20, 4 }, { 24, 4 }, { 28, 4 }, { 32, 24 }, { 32, 4 }, { 52, 4 },
		{ 56, 4 }, { 60, 4 },
	};
	unsigned int i;

	for (i = 0; i < COUNT(parts); i++) {
		struct enc rpc = { .len = 0 };

		enc_nfs4_call(&rpc, new_xid(), NFSPROC4_NULL);
		if (!part_refused(c, &rpc, parts[i], where))
			return false;
	}
	return true;
}

/* Arguments that are not eligible, in a Read chunk (RFC 8267 Section 4). */
static bool t_not_eligible(struct conn *c)
{
	static const uint8_t data[512];
	enum rest where;
	uint8_t handle[FILE_HANDLE_MAX];
	unsigned int len = get_file_handle(c, NULL, handle);

	if (!len)
		return false;
	for (where = INLINE; where <= IN_POSITION_ZERO_CHUNK; where++) {
		struct enc rpc = { .len = 0 };
		struct part part = { .len = len };

		enc_rpc_call(&rpc, new_xid(), 3, NFS3_GETATTR);
		part.from = rpc.len + 4;
		enc_opaque(&rpc, handle, len);
		if (!part_refused(c, &rpc, part, where))
			return false;
		/* The handle of a WRITE, whose data may be reduced. */
		rpc.len = 0;
		enc_rpc_call(&rpc, new_xid(), 3, NFS3_WRITE);
		enc_opaque(&rpc, handle, len);
		enc_u64(&rpc, 0);
		enc_u32(&rpc, sizeof(data));
		enc_u32(&rpc, 2); /* FILE_SYNC */
		enc_opaque(&rpc, data, sizeof(data));
		if (!part_refused(c, &rpc, part, where))
			return false;
		/* The handle and all that follows. */
		part.len = rpc.len - part.from;
		if (!part_refused(c, &rpc, part, where))
			return false;
		/* The first half of the data, and the second. */
		part = (struct part){ .from = rpc.len - sizeof(data), .len = 256 };
		if (!part_refused(c, &rpc, part, where))
			return false;
		part.from += 256;
		if (!part_refused(c, &rpc, part, where))
			return false;
	}
	return true;
}

static bool t_credential(struct conn *c)
{
	return split_header_refused(c, INLINE);
}

static bool t_credential_long_call(struct conn *c)
{
	return split_header_refused(c, IN_POSITION_ZERO_CHUNK);
}

/* A NULL Call that creates a GSS context, with the token in a Read chunk. */
static bool t_token(struct conn *c)
{
	static const uint8_t token[64];
	enum rest where;

	for (where = INLINE; where <= IN_POSITION_ZERO_CHUNK; where++) {
		struct enc rpc = { .len = 0 };
		struct part part = { .len = sizeof(token) };

		enc_u32(&rpc, new_xid());
		enc_u32(&rpc, RPC_CALL);
		enc_u32(&rpc, 2);
		enc_u32(&rpc, NFS_PROGRAM);
		enc_u32(&rpc, 4);
		enc_u32(&rpc, NFSPROC4_NULL);
		enc_u32(&rpc, RPCSEC_GSS);
		enc_u32(&rpc, GSS_CRED_LEN);
		enc_u32(&rpc, 1); /* version */
		enc_u32(&rpc, 1); /* RPCSEC_GSS_INIT */
		enc_u32(&rpc, 0);
		enc_u32(&rpc, 1); /* rpc_gss_svc_none */
		enc_u32(&rpc, 0);
		enc_u64(&rpc, 0); /* verifier: AUTH_NONE */
		part.from = rpc.len + 4;
		enc_opaque(&rpc, token, sizeof(token));
		if (!part_refused(c, &rpc, part, where))
			return false;
	}
	return true;
}

static const struct test tests[] = {
	{ "R8166-8.1-1", "the text of a link is split", t_symlink },
	{ "-", "a SYMLINK without roundup is sent again", t_sent_again },
	{ "R8166-8.2.2-1", "a credential in a Read chunk", t_credential },
	{ "R8166-8.2.2-1", "a credential in a Read chunk of a Long Call",
	  t_credential_long_call },
	{ "R8166-8.2.2-1", "the token of a GSS context in a Read chunk", t_token },
	{ "R8166-6.1-2", "arguments that are not eligible", t_not_eligible },
};

const struct group group_split_items = {
	.name = "split_items", .about = "a client that splits data items",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
