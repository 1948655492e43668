// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of what a server sends.
 */

#include "expect.h"
#include "nfs4.h"
#include "probe.h"

/* The part that ERR_VERS and ERR_CHUNK have in common. */
static bool is_any_error(const struct reply *r, uint32_t xid, uint32_t err)
{
	if (r->len < ERR_CHUNK_LEN || get_word(r->p, HDR_XID) != xid ||
	    get_word(r->p, HDR_PROC) != RDMA_ERROR || get_word(r->p, HDR_ERR) != err)
		return fail("%u bytes, xid %x, proc %u, err %u; expected xid %x, RDMA_ERROR, %u",
			    r->len, get_word(r->p, HDR_XID), get_word(r->p, HDR_PROC),
			    get_word(r->p, HDR_ERR), xid, err);
	if (r->invalidated)
		return fail("RDMA_ERROR invalidates handle %x", r->invalidated_rkey);
	return get_word(r->p, HDR_CREDITS) ? true : fail("RDMA_ERROR grants no credits");
}

/* ERR_CHUNK has no arguments. */
bool is_error(const struct reply *r, uint32_t xid, uint32_t err)
{
	if (!is_any_error(r, xid, err))
		return false;
	if (r->len != ERR_CHUNK_LEN || get_word(r->p, HDR_VERS) != RPCRDMA_VERSION)
		return fail("RDMA_ERROR of %u bytes, vers %u", r->len, get_word(r->p, HDR_VERS));
	return true;
}

/* ERR_VERS repeats the Call's version, and says that only version 1 is supported. */
bool is_err_vers(const struct reply *r, uint32_t xid, uint32_t vers)
{
	if (!is_any_error(r, xid, ERR_VERS))
		return false;
	if (r->len != ERR_VERS_LEN || get_word(r->p, HDR_VERS) != vers ||
	    get_word(r->p, HDR_VERS_LOW) != RPCRDMA_VERSION ||
	    get_word(r->p, HDR_VERS_HIGH) != RPCRDMA_VERSION)
		return fail("ERR_VERS of %u bytes, vers %u, range %u..%u", r->len,
			    get_word(r->p, HDR_VERS), get_word(r->p, HDR_VERS_LOW),
			    get_word(r->p, HDR_VERS_HIGH));
	return true;
}

/* Gets the next word. If the message ends before it, @w is behind the end. */
static bool next_word(const struct reply *r, unsigned int *w, uint32_t *value)
{
	const unsigned int at = (*w)++;

	if (4 * *w > r->len)
		return false;
	*value = get_word(r->p, at);
	return true;
}

/* Skips a Write chunk or Reply chunk. False if there is none, or the message ends in it. */
static bool skip_chunk(const struct reply *r, unsigned int *w)
{
	uint32_t present, n;

	if (!next_word(r, w, &present) || !present)
		return false;
	/* A malformed discriminator: the lists do not end in this message. */
	if (present > 1)
		*w = r->len;
	if (!next_word(r, w, &n))
		return false;
	*w += SEGMENT_WORDS * (n < r->len ? n : r->len);
	return 4 * *w < r->len;
}

/*
 * Checks the header of a Reply, which has no Read list. @at is where in the message the RPC
 * Reply starts, or 0 for RDMA_NOMSG.
 */
bool reply_body(const struct reply *r, uint32_t xid, unsigned int *at)
{
	unsigned int w = HDR_LISTS;
	uint32_t proc;

	if (r->len < HDR_EMPTY_LEN || get_word(r->p, HDR_XID) != xid ||
	    get_word(r->p, HDR_VERS) != RPCRDMA_VERSION)
		return fail("%u bytes, xid %x (expected %x), vers %u", r->len,
			    get_word(r->p, HDR_XID), xid, get_word(r->p, HDR_VERS));
	proc = get_word(r->p, HDR_PROC);
	if (proc == RDMA_ERROR)
		return fail("RDMA_ERROR %u", get_word(r->p, HDR_ERR));
	if (proc > RDMA_NOMSG || !get_word(r->p, HDR_CREDITS))
		return fail("proc %u, %u credits", proc, get_word(r->p, HDR_CREDITS));
	if (get_word(r->p, w++))
		return fail("a Read list in a Reply");
	while (skip_chunk(r, &w))
		;
	skip_chunk(r, &w);
	if (4 * w > r->len)
		return fail("the chunk lists exceed the message of %u bytes", r->len);
	*at = proc == RDMA_NOMSG ? 0 : 4 * w;
	if (!*at && 4 * w != r->len)
		return fail("%u bytes behind the header of an RDMA_NOMSG", r->len - 4 * w);
	if (*at && (r->len < *at + 4 || get_word(r->p + *at, RPC_XID) != xid))
		return fail("xid %x in the payload (expected %x)",
			    get_word(r->p + *at, RPC_XID), xid);
	return true;
}

/* Checks that this is the first Reply to one of the @n Calls whose XIDs start at @first. */
bool answers_one(const struct reply *r, uint32_t first, unsigned int n, bool *seen,
		 unsigned int *at)
{
	const uint32_t i = get_word(r->p, HDR_XID) - first;

	if (i >= n)
		return fail("xid %x (expected %x to %x)", get_word(r->p, HDR_XID), first,
			    first + n - 1);
	if (seen[i])
		return fail("a second Reply for xid %x", get_word(r->p, HDR_XID));
	seen[i] = true;
	return reply_body(r, first + i, at);
}

/* Checks that a compound of enc_compound() with @ops operations has succeeded. */
bool compound_ok(const uint8_t *p, unsigned int ops)
{
	if (get_word(p, RPC_TYPE) != RPC_REPLY || get_word(p, RPC_REPLY_STAT) ||
	    get_word(p, RPC_ACCEPT_STAT))
		return fail("msg_type %u, reply_stat %u, accept_stat %u", get_word(p, RPC_TYPE),
			    get_word(p, RPC_REPLY_STAT), get_word(p, RPC_ACCEPT_STAT));
	if (get_word(p, NFS_STATUS))
		return fail("NFS4 status %u", get_word(p, NFS_STATUS));
	if (get_word(p, COMPOUND_NUMRES) != ops + COMPOUND_PREFIX_OPS)
		return fail("%u results, expected %u", get_word(p, COMPOUND_NUMRES),
			    ops + COMPOUND_PREFIX_OPS);
	return true;
}

/* The same for a Reply in a Reply chunk, whose XID was not checked by reply_body(). */
bool compound_ok_xid(const uint8_t *p, uint32_t xid, unsigned int ops)
{
	if (get_word(p, RPC_XID) != xid)
		return fail("xid %x in the Reply chunk (expected %x)", get_word(p, RPC_XID), xid);
	return compound_ok(p, ops);
}

/*
 * Checks that a Write chunk or the Reply chunk is returned as it was offered, but for the
 * lengths: @len bytes fill its segments in order (RFC 8166 Section 3.4.6). Moves @w behind it.
 */
bool chunk_returned(const struct reply *r, unsigned int *w, const uint8_t *offered, uint32_t len)
{
	const uint32_t n = get_word(offered, 1);
	const uint8_t *p = r->p + 4 * *w;
	uint32_t i, want;

	if (get_word(p, 0) != 1 || get_word(p, 1) != n)
		return fail("a chunk of %u segments is returned as %u %u", n, get_word(p, 0),
			    get_word(p, 1));
	offered += CHUNK_HEAD_LEN;
	p += CHUNK_HEAD_LEN;
	for (i = 0; i < n; i++, offered += SEGMENT_LEN, p += SEGMENT_LEN) {
		if (get_word(p, 0) != get_word(offered, 0) ||
		    get_dword(p, 2) != get_dword(offered, 2))
			return fail("segment %u of %u: handle or offset has changed", i, n);
		want = get_word(offered, 1) < len ? get_word(offered, 1) : len;
		if (get_word(p, 1) != want)
			return fail("segment %u of %u: length %u, expected %u", i, n,
				    get_word(p, 1), want);
		len -= want;
	}
	*w += CHUNK_HEAD_LEN / 4 + SEGMENT_WORDS * n;
	return len ? fail("the chunk is %u bytes too short", len) : true;
}

/* The same for a chunk that is at the same place in the Call. */
bool same_chunk_returned(const struct reply *r, unsigned int *w, const struct enc *call,
			 uint32_t len)
{
	return chunk_returned(r, w, call->buf + 4 * *w, len);
}

/* Checks that the Write list ends here, and that there is no Reply chunk. */
bool no_more_chunks(const struct reply *r, unsigned int w)
{
	if (get_word(r->p, w) || get_word(r->p, w + 1))
		return fail("more chunks are returned than were offered");
	return true;
}

/* Checks how many bytes of the RPC Reply are inline; @at is from reply_body(). */
bool inline_len_is(const struct reply *r, unsigned int at, unsigned int len)
{
	if (!at || r->len - at != len)
		return fail("%u bytes are inline, expected %u", at ? r->len - at : 0, len);
	return true;
}

/* Checks that the server still answers on this connection. */
bool alive(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at;

	enc_null_call(&e, xid);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (!at)
		return fail("NULL: RDMA_NOMSG");
	if (get_word(r.p + at, RPC_TYPE) != RPC_REPLY || get_word(r.p + at, RPC_ACCEPT_STAT))
		return fail("NULL: msg_type %u, accept_stat %u", get_word(r.p + at, RPC_TYPE),
			    get_word(r.p + at, RPC_ACCEPT_STAT));
	return true;
}

/* Checks that the Call is answered by RDMA_ERROR, and that the connection stays usable. */
bool refused(struct conn *c, const struct enc *e, uint32_t xid, uint32_t err)
{
	struct reply r;

	return exchange(c, e, &r) && is_error(&r, xid, err) && alive(c);
}

bool not_answered(struct conn *c, const struct enc *e)
{
	struct reply r;

	if (!send_msg(c, e) || !get_reply(c, &r, 300))
		return false;
	return r.any ? fail("answered: proc %u", get_word(r.p, HDR_PROC)) : true;
}

/* Checks that the message is not answered, and that the connection stays usable. */
bool ignored(struct conn *c, const struct enc *e)
{
	return not_answered(c, e) && alive(c);
}

/* Sends a compound whose results fit in a Short Reply. */
bool compound_succeeds(struct conn *c, const struct enc *e, unsigned int ops)
{
	struct reply r;
	unsigned int at;

	return exchange(c, e, &r) && reply_body(&r, get_word(e->buf, HDR_XID), &at) &&
	       compound_ok(r.p + at, ops);
}
