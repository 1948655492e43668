// SPDX-License-Identifier: GPL-2.0
/*
 * A client with chunks of every kind, and what they carry.
 */

#include <string.h>
#include "expect.h"
#include "file_io.h"
#include "group.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

/* The longest data that the server reassembles with its Call. */
#define LONGEST_IN_CALL	30001

static const unsigned int sizes[] = { 1, 3, 4, 5, 511, 4095, 4096, 4097, 30001, 65536, 100001 };

static bool t_file(struct conn *c)
{
	struct enc e;

	enc_compound_call(&e, new_xid(), 1);
	enc_lookup(&e, "probe");
	return compound_succeeds(c, &e, 1);
}

/* WRITEs and READs the same part of the file. */
static bool write_and_read(struct conn *c, const struct file_io *write, const struct file_io *read)
{
	if (write_file_item(c, write) && read_file_item(c, read))
		return true;
	return fail("%u bytes in %u segments: %s", write->count, write->segments, probe.reason);
}

static bool t_write_read(struct conn *c)
{
	unsigned int i, n;

	for (i = 0; i < COUNT(sizes); i++)
		for (n = 1; n <= 5 && n <= sizes[i]; n += 2) {
			const struct file_io write = { .count = sizes[i], .segments = n };
			const struct file_io read = {
				.count = sizes[i], .segments = n, .excess = i * 100,
			};

			if (!write_and_read(c, &write, &read))
				return false;
		}
	return true;
}

/* WRITEs each size in 1 to 4 segments. */
static bool write_sizes(struct conn *c, enum write_form form, unsigned int offset,
			unsigned int longest)
{
	unsigned int i, n;

	for (i = 0; i < COUNT(sizes) && sizes[i] <= longest; i++)
		for (n = 1; n <= 4; n++) {
			const struct file_io write = {
				.offset = offset, .count = sizes[i], .segments = n, .form = form,
			};
			const struct file_io read = { .offset = offset, .count = sizes[i] };

			if (form == POSITION_ZERO_READ_CHUNK && n > sizes[i])
				break;
			if (!write_and_read(c, &write, &read))
				return false;
		}
	return true;
}

static bool t_position_zero(struct conn *c)
{
	return write_sizes(c, POSITION_ZERO, 7, LONGEST_IN_CALL);
}

static bool t_position_zero_and_item(struct conn *c)
{
	return write_sizes(c, POSITION_ZERO_READ_CHUNK, 9, -1);
}

static bool t_empty_segments(struct conn *c)
{
	static const struct file_io writes[] = {
		{ .count = 4097, .segments = 3, .empty_segments = true },
		{ .count = 4096, .segments = 2, .empty_segments = true, .form = POSITION_ZERO },
		{ .count = 30001, .segments = 2, .empty_segments = true,
		  .form = POSITION_ZERO_READ_CHUNK },
	};
	static const struct file_io read = {
		.count = 30001, .segments = 3, .empty_segments = true,
	};
	unsigned int i;

	for (i = 0; i < COUNT(writes); i++)
		if (!write_file_item(c, &writes[i]))
			return false;
	return read_file_item(c, &read);
}

/* There is nothing to read, and the server uses no handle. */
static bool t_only_empty_segments(struct conn *c)
{
	return write_file_item(c, &(struct file_io) { .segments = 3, .empty_segments = true }) &&
	       alive(c);
}

/* One Call with three WRITEs, each with its Read chunk, in this or the opposite order. */
static bool several_chunks(struct conn *c, bool backwards)
{
	static const unsigned int len[3] = { 1000, 4097, 3 }, offset[3] = { 0, 1000, 5097 };
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	unsigned int position[3], i, reduced = 0;
	const uint32_t xid = new_xid();

	enc_compound(&rpc, xid, 5);
	enc_lookup(&rpc, "probe");
	new_pattern();
	for (i = 0; i < 3; i++) {
		fill_pattern(c->area + i * 65536, offset[i], len[i]);
		position[i] = enc_write(&rpc, offset[i], len[i]) + reduced;
		reduced += xdr_align(len[i]);
	}
	enc_u32(&rpc, GETFH);
	enc_call_hdr(&e, xid, RDMA_MSG);
	for (i = 0; i < 3; i++) {
		const unsigned int k = backwards ? 2 - i : i;

		enc_rseg(&e, position[k], c->area_mr->rkey, len[k], area_addr(c, k * 65536));
	}
	enc_no_chunks(&e);
	enc_bytes(&e, rpc.buf, rpc.len);
	if (!compound_succeeds(c, &e, 5))
		return fail("%s: %s", backwards ? "backwards" : "forwards", probe.reason);
	return read_file_item(c, &(struct file_io) { .count = 5100, .segments = 2 });
}

static bool t_several(struct conn *c)
{
	return several_chunks(c, false) && several_chunks(c, true);
}

/* Three READs, and three Write chunks, of which the second is empty. */
static bool t_two_results(struct conn *c)
{
	const uint32_t handle = c->area_mr->rkey, xid = new_xid();
	struct enc e = { .len = 0 };
	struct reply r;
	unsigned int at, w = HDR_WRITE_LIST;

	if (!write_item(c, 0, 9000))
		return false;
	memset(c->area, 0xee, AREA);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	enc_wchunk(&e, handle, 8192, area_addr(c, 0));
	enc_chunk_head(&e, 0);
	enc_chunk_head(&e, 2);
	enc_seg(&e, handle, 100, area_addr(c, 65536));
	enc_seg(&e, handle, 8192, area_addr(c, 65536 + 100));
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 4);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 5001);
	enc_read(&e, 17, 100);
	enc_read(&e, 3, 2000);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 4))
		return false;
	/* The result for the empty chunk is inline. */
	if (!same_chunk_returned(&r, &w, &e, 5001) || !same_chunk_returned(&r, &w, &e, 0) ||
	    !same_chunk_returned(&r, &w, &e, 2000) || !no_more_chunks(&r, w) ||
	    !inline_len_is(&r, at, READ_REPLY_LEN + 2 * READ_RESULT_LEN + 100))
		return false;
	/* nfsd names wrong pages for the second and third READ (Documentation/probe.rst). */
	return check_pattern("first READ", c->area, 0, 5001);
}

/* Checks that the Call fails, by RDMA_ERROR or by an NFS status, and that nothing is written. */
static bool fails_without_writing(struct conn *c, const struct enc *e, uint32_t xid)
{
	struct reply r;
	unsigned int at, i;

	memset(c->area, 0xee, AREA);
	if (!exchange(c, e, &r))
		return false;
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR) {
		if (!is_error(&r, xid, ERR_CHUNK))
			return false;
	} else {
		if (!reply_body(&r, xid, &at))
			return false;
		if (!at || (!get_word(r.p + at, RPC_ACCEPT_STAT) &&
			    !get_word(r.p + at, NFS_STATUS)))
			return fail("the Call succeeds: proc %u, %u bytes",
				    get_word(r.p, HDR_PROC), r.len);
	}
	for (i = 0; i < AREA; i++)
		if (c->area[i] != 0xee)
			return fail("the server wrote to byte %u", i);
	return alive(c);
}

/* A READ of @count bytes, with a Write chunk and a Reply chunk of these lengths, or none if 0. */
static bool read_into(struct conn *c, unsigned int count, unsigned int write, unsigned int reply)
{
	const uint32_t handle = c->area_mr->rkey, xid = new_xid();
	struct enc e = { .len = 0 };

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	if (write) {
		enc_chunk_head(&e, 2);
		enc_seg(&e, handle, write / 2, area_addr(c, 0));
		enc_seg(&e, handle, write / 2, area_addr(c, write / 2));
	}
	enc_list_end(&e);
	if (reply) {
		enc_chunk_head(&e, 2);
		enc_seg(&e, handle, reply / 2, area_addr(c, 0));
		enc_seg(&e, handle, reply / 2, area_addr(c, reply / 2));
	} else {
		enc_no_reply_chunk(&e);
	}
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, count);
	return fails_without_writing(c, &e, xid);
}

static bool t_small_write(struct conn *c)
{
	return read_into(c, 8192, 2048, 0);
}

/* nfsd cannot take back data with a roundup: the kernel log has a warning if it has to. */
static bool t_small_write_odd(struct conn *c)
{
	return read_into(c, 8191, 2048, 0);
}

static bool t_small_reply(struct conn *c)
{
	return read_into(c, 8192, 0, 1000);
}

static bool t_no_reply(struct conn *c)
{
	return read_into(c, 8192, 0, 0);
}

/* Checks that the Reply to a NULL Call is in its Reply chunk. */
static bool null_in_reply_chunk(struct conn *c, const struct reply *r, const struct enc *e,
				uint32_t xid)
{
	unsigned int w = HDR_REPLY_CHUNK;

	if (!same_chunk_returned(r, &w, e, RPC_REPLY_LEN))
		return false;
	if (get_word(c->area, RPC_XID) != xid || get_word(c->area, RPC_TYPE) != RPC_REPLY ||
	    get_word(c->area, RPC_ACCEPT_STAT))
		return fail("Reply chunk: xid %x (expected %x), msg_type %u, accept_stat %u",
			    get_word(c->area, RPC_XID), xid, get_word(c->area, RPC_TYPE),
			    get_word(c->area, RPC_ACCEPT_STAT));
	return true;
}

/* A Long Reply, in a Reply chunk of @n segments. */
static bool long_reply(struct conn *c, unsigned int n)
{
	const unsigned int count = 8001, each = 16384 / n;
	unsigned int at, i, w = HDR_REPLY_CHUNK;
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	struct reply r;

	memset(c->area, 0xee, 65536);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	enc_list_end(&e);
	enc_chunk_head(&e, n);
	for (i = 0; i < n; i++)
		enc_seg(&e, c->area_mr->rkey, each, area_addr(c, i * each));
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, count);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (at || get_word(r.p, HDR_PROC) != RDMA_NOMSG)
		return fail("not a Long Reply");
	/* A Long Reply includes the roundup of the data. */
	return same_chunk_returned(&r, &w, &e, READ_REPLY_LEN + xdr_align(count)) &&
	       compound_ok_xid(c->area, xid, 2) &&
	       check_pattern("data", c->area + READ_REPLY_LEN, 0, count);
}

static bool t_reply_chunk(struct conn *c)
{
	const struct segment room = area_segment(c, 0, 16384);
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	struct reply r;
	unsigned int at, n, w = HDR_REPLY_CHUNK;

	if (!write_item(c, 0, 9000))
		return false;
	for (n = 1; n <= 4; n++)
		if (!long_reply(c, n))
			return false;
	/* A Reply that fits in a Send: the server may still use the Reply chunk. */
	enc_reply_chunk_hdr(&e, xid, &room);
	enc_nfs4_call(&e, xid, NFSPROC4_NULL);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	return at ? same_chunk_returned(&r, &w, &e, 0) : null_in_reply_chunk(c, &r, &e, xid);
}

/*
 * READ and READDIR, with a Write chunk for the data, and a Reply chunk: the directory does not fit
 * in a Send.
 */
static bool t_both(struct conn *c)
{
	enum { ROOM = 65536, REPLY_AT = 65536, LEN = 7001 };
	const uint32_t handle = c->area_mr->rkey, xid = new_xid();
	const uint8_t *rpc = c->area + REPLY_AT;
	struct enc e = { .len = 0 };
	struct reply r;
	unsigned int at, w = HDR_WRITE_LIST, written, i;

	if (!write_item(c, 0, 9000))
		return false;
	memset(c->area, 0xee, AREA);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	enc_wchunk(&e, handle, 8192, area_addr(c, 0));
	enc_list_end(&e);
	enc_wchunk(&e, handle, ROOM, area_addr(c, REPLY_AT));
	enc_compound(&e, xid, 5);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, LEN);
	enc_u32(&e, PUTROOTFH);
	enc_lookup(&e, probe.dir);
	enc_u32(&e, READDIR);
	enc_u64(&e, 0);		/* cookie, verifier */
	enc_u64(&e, 0);
	enc_u32(&e, 32768);	/* dircount, maxcount */
	enc_u32(&e, 32768);
	enc_u32(&e, 1);		/* attributes: change, size */
	enc_u32(&e, 0x18);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (at)
		return fail("the directory is too small for this case");
	if (!same_chunk_returned(&r, &w, &e, LEN))
		return false;
	w++;		/* the end of the Write list */
	written = get_word(r.p, w + 3);		/* behind presence, segments and handle */
	if (!same_chunk_returned(&r, &w, &e, written) || !compound_ok_xid(rpc, xid, 5) ||
	    !check_pattern("data", c->area, 0, LEN))
		return false;
	/* The data is in the Write chunk only: the next result follows READ's count. */
	if (get_word(rpc, READ_COUNT) != LEN || get_word(rpc, READ_NEXT_RESULT) != PUTROOTFH)
		return fail("READ of %u bytes, then operation %u", get_word(rpc, READ_COUNT),
			    get_word(rpc, READ_NEXT_RESULT));
	for (i = written; i < ROOM; i++)
		if (rpc[i] != 0xee)
			return fail("the server wrote more than the %u bytes that it returns",
				    written);
	return true;
}

/*
 * Without private data the client may be an old one, which cannot process a Short Reply to a Call
 * with a Reply chunk.
 */
static bool t_old_requester(struct conn *c)
{
	const struct segment room = area_segment(c, 0, 4096);
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	struct reply r;
	unsigned int at;

	memset(c->area, 0xee, 4096);
	enc_reply_chunk_hdr(&e, xid, &room);
	enc_nfs4_call(&e, xid, NFSPROC4_NULL);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (at || get_word(r.p, HDR_PROC) != RDMA_NOMSG)
		return fail("a Short Reply");
	return null_in_reply_chunk(c, &r, &e, xid);
}

static const struct test tests[] = {
	{ "R8166-3.5.1-1", "LOOKUP of the test file", t_file },
	{ "R8166-3.4.4-1 R8166-3.4.6-2 R8166-3.4.6-3 R8166-3.4.6.2-2 R8166-3.4.6.2-3 R8166-4.3.2-2 R8166-4.3.2.2-2",
	  "WRITE by Read chunk, READ by Write chunk", t_write_read },
	{ "R8166-3.5.3-5 R8166-3.5.3-8 R8166-4-3", "Position-zero chunks", t_position_zero },
	{ "R8267-6.4.2-2", "Position-zero chunk and Read chunk", t_position_zero_and_item },
	{ "R8166-3.4.3-1", "empty segments", t_empty_segments },
	{ "R8166-3.4.3-1", "a Read list of empty segments", t_only_empty_segments },
	{ "R8166-3.4.5-1", "several Read chunks", t_several },
	{ "R8166-4.3.2.3-3", "several Write chunks, one of them empty", t_two_results },
	{ "R8267-3.1-3", "a Write chunk that is too small", t_small_write },
	{ "R8267-3.1-3", "a Write chunk that is too small for data with a roundup",
	  t_small_write_odd },
	{ "R8166-4.5.3-2 R8267-3.1-3", "a Reply chunk that is too small", t_small_reply },
	{ "R8166-3.3.2-1 R8267-3.1-1", "no Reply chunk for a Long Reply", t_no_reply },
	{ "R8166-3.5.3-7 R8166-3.5.3-2 R8166-4.3.3-3 R8166-4.3.3-2", "Reply chunks", t_reply_chunk },
	{ "R8166-4.3.3-2", "a Reply chunk without private data", t_old_requester,
	  .params = &params_no_private },
	{ "R8166-3.5.3-6", "Write chunk and Reply chunk", t_both },
};

const struct group group_chunks = {
	.name = "chunks", .about = "a client with chunks of every kind",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
