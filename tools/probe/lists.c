// SPDX-License-Identifier: GPL-2.0
/*
 * A client with chunk lists of unusual form, all of them valid.
 */

#include <errno.h>
#include <string.h>
#include "answers.h"
#include "expect.h"
#include "file_io.h"
#include "group.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

#define REPLY_AT	(AREA / 2)	/* the Reply chunk's place in the area */
#define FATTR3_WORDS	21

/* Starts a Call whose Write chunks follow. */
static void begin_write_list(struct enc *e, uint32_t xid)
{
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_list_end(e);
}

static void enc_area_wchunk(struct enc *e, struct conn *c, unsigned int at, unsigned int len)
{
	enc_wchunk(e, c->area_mr->rkey, len, area_addr(c, at));
}

/* Checks that the compound succeeds, whether its Reply is inline or in the Reply chunk. */
static bool compound_answered(struct conn *c, const struct enc *e, struct reply *r,
			      unsigned int *at, unsigned int ops)
{
	const uint32_t xid = get_word(e->buf, HDR_XID);

	return exchange(c, e, r) && reply_body(r, xid, at) &&
	       compound_ok_xid(*at ? r->p + *at : c->area + REPLY_AT, xid, ops);
}

/* Two Read chunks whose segments alternate: A, B, A. The server may refuse them. */
static bool t_interleaved(struct conn *c)
{
	static const unsigned int size = 4096;
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	const uint32_t handle = c->area_mr->rkey, xid = new_xid();
	unsigned int a, b, at;
	struct reply r;

	new_pattern();
	fill_pattern(c->area, 0, 2 * size);
	enc_compound(&rpc, xid, 3);
	enc_lookup(&rpc, "probe");
	a = enc_write(&rpc, 0, size);
	b = enc_write(&rpc, size, size) + size;
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, a, handle, 1000, area_addr(c, 0));
	enc_rseg(&e, b, handle, size, area_addr(c, size));
	enc_rseg(&e, a, handle, size - 1000, area_addr(c, 1000));
	enc_no_chunks(&e);
	enc_bytes(&e, rpc.buf, rpc.len);
	if (!exchange(c, &e, &r))
		return false;
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	return reply_body(&r, xid, &at) && compound_ok(r.p + at, 3) && read_item(c, 0, 2 * size);
}

enum roundup { IN_LAST_SEGMENT, IN_OWN_SEGMENT, INLINE };

/* A WRITE of @size bytes in a Read chunk, and their roundup. */
static bool write_with_roundup(struct conn *c, unsigned int size, enum roundup where)
{
	const uint32_t handle = c->area_mr->rkey, xid = new_xid();
	static const char *const places[] = { "the last segment", "its own segment", "the payload" };
	static const uint8_t zeroes[3];
	const unsigned int offset = 11, pad = xdr_pad(size);
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	unsigned int position;

	new_pattern();
	fill_pattern(c->area, offset, size);
	memset(c->area + size, 0, pad);
	enc_compound(&rpc, xid, 3);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, offset, size);
	if (where == INLINE)
		enc_bytes(&rpc, zeroes, pad);
	enc_u32(&rpc, GETFH);
	enc_call_hdr(&e, xid, RDMA_MSG);
	if (where == IN_LAST_SEGMENT)
		enc_rseg(&e, position, handle, size + pad, area_addr(c, 0));
	else
		enc_rseg(&e, position, handle, size, area_addr(c, 0));
	if (where == IN_OWN_SEGMENT)
		enc_rseg(&e, position, handle, pad, area_addr(c, size));
	enc_no_chunks(&e);
	enc_bytes(&e, rpc.buf, rpc.len);
	if (!compound_succeeds(c, &e, 3))
		return fail("%u bytes, roundup in %s: %s", size, places[where], probe.reason);
	return read_item(c, offset, size);
}

static bool t_roundup(struct conn *c)
{
	unsigned int size;

	for (size = 1; size < 8; size++)
		if (!write_with_roundup(c, size, IN_LAST_SEGMENT) ||
		    !write_with_roundup(c, size, IN_OWN_SEGMENT))
			return false;
	return true;
}

/*
 * The roundup behind the Position, where Solaris and illumos send it. RFC 8166 Section 3.4.4.4 does
 * not allow it.
 */
static bool t_inline_roundup(struct conn *c)
{
	unsigned int size;

	for (size = 1; size < 8; size++)
		if (!write_with_roundup(c, size, INLINE))
			return false;
	return true;
}

/* Three READs, and Write chunks for two of them. */
static bool t_more_results(struct conn *c)
{
	const uint32_t xid = new_xid();
	unsigned int at, w = HDR_WRITE_LIST;
	struct reply r;
	struct enc e;

	if (!write_item(c, 0, 9000))
		return false;
	memset(c->area, 0xee, 65536);
	begin_write_list(&e, xid);
	enc_area_wchunk(&e, c, 0, 2000);
	enc_area_wchunk(&e, c, 32768, 2000);
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 4);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 2000);
	enc_read(&e, 2000, 1000);
	enc_read(&e, 3000, 500);
	if (!compound_answered(c, &e, &r, &at, 4))
		return false;
	if (!same_chunk_returned(&r, &w, &e, 2000) || !same_chunk_returned(&r, &w, &e, 1000) ||
	    !no_more_chunks(&r, w))
		return false;
	/* The third result is inline. */
	if (!inline_len_is(&r, at, READ_REPLY_LEN + 2 * READ_RESULT_LEN + 500))
		return false;
	/* nfsd names wrong pages for the second and third READ (Documentation/probe.rst). */
	return check_pattern("first READ", c->area, 0, 2000);
}

#define RESULTS	16	/* that this server returns in Write chunks */

/* @n READs, and a Write chunk for each. The server may refuse more than RESULTS of them. */
static bool results_in_chunks(struct conn *c, unsigned int n)
{
	static const unsigned int size = 100;
	const uint32_t xid = new_xid();
	unsigned int i, at, w = HDR_WRITE_LIST;
	struct reply r;
	struct enc e;

	begin_write_list(&e, xid);
	for (i = 0; i < n; i++)
		enc_area_wchunk(&e, c, i * size, size);
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, n + 1);
	enc_lookup(&e, "probe");
	for (i = 0; i < n; i++)
		enc_read(&e, i * size, size);
	if (!exchange(c, &e, &r))
		return false;
	if (n > RESULTS && get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	if (!reply_body(&r, xid, &at) || !compound_ok(r.p + at, n + 1))
		return false;
	for (i = 0; i < n; i++)
		if (!same_chunk_returned(&r, &w, &e, size))
			return fail("chunk %u of %u: %s", i + 1, n, probe.reason);
	return no_more_chunks(&r, w) &&
	       inline_len_is(&r, at, READ_REPLY_LEN + (n - 1) * READ_RESULT_LEN);
}

/* Each result is in its Write chunk, or the Call is refused. */
static bool t_many_results(struct conn *c)
{
	return write_item(c, 0, 2 * RESULTS * 100) && results_in_chunks(c, RESULTS) &&
	       results_in_chunks(c, RESULTS + 1) && results_in_chunks(c, 2 * RESULTS);
}

/* READs without a Write chunk: the data is inline, with its roundup. */
static bool t_no_wchunk(struct conn *c)
{
	static const unsigned int sizes[] = { 1, 2, 3, 4, 500 };
	const unsigned int w = HDR_WRITE_LIST;
	unsigned int i, at;
	struct reply r;
	struct enc e;

	if (!write_item(c, 0, 500))
		return false;
	for (i = 0; i < COUNT(sizes); i++) {
		enc_compound_call(&e, new_xid(), 2);
		enc_lookup(&e, "probe");
		enc_read(&e, 0, sizes[i]);
		if (!compound_answered(c, &e, &r, &at, 2) || !no_more_chunks(&r, w) ||
		    !inline_len_is(&r, at, READ_REPLY_LEN + sizes[i] + xdr_pad(sizes[i])) ||
		    !check_pattern("inline READ", r.p + at + READ_REPLY_LEN, 0, sizes[i]))
			return false;
	}
	return true;
}

/* The READ fails, so there is no result for the Write chunk. */
static bool t_unused(struct conn *c)
{
	const uint32_t handle = c->area_mr->rkey, xid = new_xid();
	unsigned int at, w = HDR_WRITE_LIST;
	struct reply r;
	struct enc e;

	begin_write_list(&e, xid);
	enc_chunk_head(&e, 2);
	enc_seg(&e, handle, 4096, area_addr(c, 0));
	enc_seg(&e, handle, 4096, area_addr(c, 4096));
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 1);
	enc_read(&e, 0, 8192);		/* of the directory */
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (!at || !get_word(r.p + at, NFS_STATUS))
		return fail("READ of a directory succeeds");
	return same_chunk_returned(&r, &w, &e, 0) && no_more_chunks(&r, w);
}

/* An empty Write chunk: the data stays in the RPC Reply, which gets long. */
static bool t_empty_wchunk(struct conn *c)
{
	const unsigned int count = 60000;
	const uint32_t xid = new_xid();
	unsigned int at, w = HDR_WRITE_LIST;
	struct reply r;
	struct enc e;

	if (!write_item(c, 0, count))
		return false;
	memset(c->area, 0xee, AREA);
	begin_write_list(&e, xid);
	enc_chunk_head(&e, 0);
	enc_list_end(&e);
	enc_area_wchunk(&e, c, REPLY_AT, 100000);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, count);
	if (!compound_answered(c, &e, &r, &at, 2))
		return false;
	if (at)
		return fail("a Short Reply");
	if (!same_chunk_returned(&r, &w, &e, 0))
		return false;
	if (get_word(r.p, w++))
		return fail("two Write chunks are returned");
	return same_chunk_returned(&r, &w, &e, READ_REPLY_LEN + count) &&
	       check_pattern("data", c->area + REPLY_AT + READ_REPLY_LEN, 0, count);
}

/* The path of a link is eligible for reduction, so it has to be in the Write chunk. */
static bool t_readlink(struct conn *c)
{
	const uint32_t xid = new_xid();
	unsigned int at, w = HDR_WRITE_LIST;
	struct reply r;
	struct enc e;

	begin_write_list(&e, xid);
	enc_area_wchunk(&e, c, 0, 4096);
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "link");
	enc_u32(&e, READLINK);
	if (!compound_answered(c, &e, &r, &at, 2))
		return false;
	/* The path is not compared: nfsd says that it starts four bytes early. */
	return same_chunk_returned(&r, &w, &e, strlen("probe")) && no_more_chunks(&r, w) &&
	       inline_len_is(&r, at, READLINK_REPLY_LEN);
}

/*
 * A READ or READLINK of NFSv3. The data has to be in the Write chunk, at the start of the area, and
 * the length of the data is the last word inline.
 */
static bool nfs3_result_placed(struct conn *c, const char *name, uint32_t procedure,
			       unsigned int len)
{
	const uint32_t xid = new_xid();
	uint8_t handle[FILE_HANDLE_MAX];
	unsigned int at, count, w = HDR_WRITE_LIST, handle_len = get_file_handle(c, name, handle);
	struct reply r;
	struct enc e;

	if (!handle_len)
		return false;
	memset(c->area, 0xee, 4096);
	begin_write_list(&e, xid);
	enc_area_wchunk(&e, c, 0, 4096);
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_rpc_call(&e, xid, 3, procedure);
	enc_opaque(&e, handle, handle_len);
	if (procedure == NFS3_READ) {
		enc_u64(&e, 0);
		enc_u32(&e, len);
	}
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (!at)
		return fail("the Reply is not inline");
	if (get_word(r.p + at, RPC_ACCEPT_STAT) || get_word(r.p + at, NFS_STATUS))
		return fail("accept_stat %u, status %u", get_word(r.p + at, RPC_ACCEPT_STAT),
			    get_word(r.p + at, NFS_STATUS));
	if (!same_chunk_returned(&r, &w, &e, len) || !no_more_chunks(&r, w))
		return false;
	/* Behind the attributes: count and eof, for a READ; then the length. */
	count = NFS_STATUS + 2;
	if (get_word(r.p + at, NFS_STATUS + 1))
		count += FATTR3_WORDS;
	if (procedure == NFS3_READ)
		count += 2;
	if (!inline_len_is(&r, at, 4 * (count + 1)))
		return false;
	return get_word(r.p + at, count) == len ? true :
		fail("a length of %u, expected %u", get_word(r.p + at, count), len);
}

static bool t_nfs3_results(struct conn *c)
{
	const unsigned int len = 1001;

	if (!write_item(c, 0, len) || !nfs3_result_placed(c, "probe", NFS3_READ, len) ||
	    !check_pattern("data", c->area, 0, len) ||
	    !nfs3_result_placed(c, "link", NFS3_READLINK, strlen("probe")))
		return false;
	return memcmp(c->area, "probe", strlen("probe")) ?
		fail("the path is \"%.5s\"", (const char *)c->area) : true;
}

/* The offset of a segment need not be an address: here the first byte's offset is zero. */
static bool t_offset_zero(struct conn *c)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	const unsigned int size = 8192, offset = 3;
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int position, at;
	struct ibv_mr *mr;
	struct reply r;
	bool ok;

	if (is_iwarp(c))
		return skip("siw supports no other offsets than addresses");
	mr = ibv_reg_mr_iova(c->pd, c->area, size, 0, access);
	if (!mr)
		return fail("ibv_reg_mr_iova: %s", strerror(errno));
	new_pattern();
	fill_pattern(c->area, offset, size);
	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, offset, size);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, position, mr->rkey, size, 0);
	enc_no_chunks(&e);
	enc_bytes(&e, rpc.buf, rpc.len);
	ok = compound_answered(c, &e, &r, &at, 2);
	ibv_dereg_mr(mr);
	return ok && read_item(c, offset, size);
}

/*
 * A WRITE whose count differs from the length of its Read chunk. The transport, SUNRPC or NFS may
 * detect it. The server must not write more than the chunk: what follows it in memory belongs to
 * another client.
 */
static bool wrong_count(struct conn *c, unsigned int count, unsigned int size)
{
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int position, at;
	struct reply r;

	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, 0, count);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, position, c->area_mr->rkey, size, area_addr(c, 0));
	enc_no_chunks(&e);
	enc_bytes(&e, rpc.buf, rpc.len);
	if (!exchange(c, &e, &r))
		return false;
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	if (!reply_body(&r, xid, &at))
		return false;
	if (count > size && !get_word(r.p + at, RPC_ACCEPT_STAT) &&
	    !get_word(r.p + at, NFS_STATUS))
		return fail("WRITE of %u bytes with a chunk of %u succeeds", count, size);
	return alive(c);
}

static bool t_wrong_count(struct conn *c)
{
	static const unsigned int counts[] = { 4, 4092, 4100, 0x7fffffff, 0xffffffff };
	static const unsigned int size = 4096;
	unsigned int i;

	if (!write_item(c, 0, 3 * size))
		return false;
	memset(c->area, 0xee, 3 * size);
	for (i = 0; i < COUNT(counts); i++)
		if (!wrong_count(c, counts[i], size))
			return false;
	/* Nothing was written behind the chunk. */
	return read_item(c, size, 2 * size);
}

static const struct test tests[] = {
	{ "R8166-3.4.5-4", "two Read chunks whose segments alternate", t_interleaved },
	{ "R8166-3.4.5.2-4 R8166-3.4.5.2-2", "Read chunks with roundup", t_roundup },
	{ "-", "Read chunks with inline roundup", t_inline_roundup },
	{ "R8166-4.3.2.1-2 R8267-6.4.1-2", "more results than Write chunks", t_more_results },
	{ "R8166-4.3.2.1-2", "more Write chunks than the server supports", t_many_results },
	{ "R8166-4.3.2.3-1", "READs without a Write chunk", t_no_wchunk },
	{ "R8166-4.3.2.2-2", "a Write chunk without a result", t_unused },
	{ "R8166-4.3.2.3-3 R8166-4.3.2.3-4", "an empty Write chunk", t_empty_wchunk },
	{ "R8267-6.1-1 R8166-4.3.2-2", "READLINK by Write chunk", t_readlink },
	{ "R8267-4-1 R8166-4.3.2-2", "READ and READLINK of NFSv3 by Write chunk",
	  t_nfs3_results },
	{ "R8166-4.4.3-1", "a segment at offset zero", t_offset_zero },
	{ "R8166-4.5.2-2", "a WRITE whose count differs from its Read chunk", t_wrong_count },
};

const struct group group_lists = {
	.name = "lists", .about = "a client with chunk lists of unusual form",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
