// SPDX-License-Identifier: GPL-2.0
/*
 * A client's WRITEs and READs of the file "probe", with chunks of any form.
 */

#include <string.h>
#include "expect.h"
#include "file_io.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

#define CALL_AT		(AREA / 2)	/* where in the area the Call is, in a Position-zero chunk */
#define UNUSED_HANDLE	0x12345678	/* of segments of length zero */

/* A Read chunk of @len bytes of the area. All segments but the last have the same length. */
static void enc_area_read_chunk(struct conn *c, struct enc *e, const struct file_io *io,
				unsigned int position, unsigned int at, unsigned int len)
{
	const unsigned int n = io->segments ? io->segments : 1;
	/* Those of a Position-zero chunk are multiples of four. */
	const unsigned int each = position ? len / n : (len / n) & ~3;
	unsigned int i;

	for (i = 0; i < n; i++) {
		const unsigned int part = i == n - 1 ? len - i * each : each;

		if (io->empty_segments)
			enc_rseg(e, position, position ? UNUSED_HANDLE : c->area_mr->rkey, 0, 0);
		enc_rseg(e, position, c->area_mr->rkey, part, area_addr(c, at + i * each));
	}
}

/* WRITEs a new pattern. */
bool write_file_item(struct conn *c, const struct file_io *io)
{
	const bool position_zero = io->form != READ_CHUNK;
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int position;

	new_pattern();
	fill_pattern(c->area, io->offset, io->count);
	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, io->offset, io->count);
	if (io->form == POSITION_ZERO) {
		enc_bytes(&rpc, c->area, io->count);
		enc_bytes(&rpc, "\0\0\0", xdr_pad(io->count));
	}
	enc_call_hdr(&e, xid, position_zero ? RDMA_NOMSG : RDMA_MSG);
	if (position_zero) {
		memcpy(c->area + CALL_AT, rpc.buf, rpc.len);
		enc_area_read_chunk(c, &e, io, 0, CALL_AT, rpc.len);
	}
	if (io->form != POSITION_ZERO)
		enc_area_read_chunk(c, &e, io, position, 0, io->count);
	enc_no_chunks(&e);
	if (!position_zero)
		enc_bytes(&e, rpc.buf, rpc.len);
	return compound_succeeds(c, &e, 2);
}

/*
 * READs through a Write chunk, and compares the data. The Call has a second Write chunk, for
 * which there is no result.
 */
bool read_file_item(struct conn *c, const struct file_io *io)
{
	const unsigned int n = io->segments ? io->segments : 1;
	const unsigned int room = io->count + io->excess, each = room / n;
	struct enc e = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int i, at, w = HDR_WRITE_LIST;
	struct reply r;

	memset(c->area, 0xee, room + 64);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	enc_chunk_head(&e, io->empty_segments ? 2 * n : n);
	for (i = 0; i < n; i++) {
		if (io->empty_segments)
			enc_seg(&e, UNUSED_HANDLE, 0, 0);
		enc_seg(&e, c->area_mr->rkey, i == n - 1 ? room - i * each : each,
			area_addr(c, i * each));
	}
	enc_wchunk(&e, c->area_mr->rkey, 4096, area_addr(c, AREA / 2));
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, io->offset, io->count);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 2))
		return false;
	if (!same_chunk_returned(&r, &w, &e, io->count) || !same_chunk_returned(&r, &w, &e, 0) ||
	    !no_more_chunks(&r, w))
		return false;
	/* Neither the data nor its roundup is in the message as well. */
	if (!inline_len_is(&r, at, READ_REPLY_LEN))
		return false;
	if (get_word(r.p + at, READ_COUNT) != io->count)
		return fail("%u bytes READ, expected %u", get_word(r.p + at, READ_COUNT),
			    io->count);
	for (i = 0; i < 64; i++)
		if (c->area[io->count + i] != 0xee)
			return fail("the server wrote beyond the data");
	return check_pattern("data", c->area, io->offset, io->count);
}

bool write_item(struct conn *c, unsigned int offset, unsigned int count)
{
	return write_file_item(c, &(struct file_io) { .offset = offset, .count = count });
}

bool read_item(struct conn *c, unsigned int offset, unsigned int count)
{
	return read_file_item(c, &(struct file_io) { .offset = offset, .count = count });
}

/*
 * Gets the handle of a file, or of the directory if @name is NULL. The handle is the same in NFSv3.
 * Returns the length of the handle, or 0.
 */
unsigned int get_file_handle(struct conn *c, const char *name, uint8_t handle[FILE_HANDLE_MAX])
{
	const unsigned int ops = name ? 2 : 1;
	unsigned int at, len;
	struct reply r;
	struct enc e;

	enc_compound_call(&e, new_xid(), ops);
	if (name)
		enc_lookup(&e, name);
	enc_u32(&e, GETFH);
	if (!exchange(c, &e, &r) || !reply_body(&r, get_word(e.buf, HDR_XID), &at) ||
	    !compound_ok(r.p + at, ops))
		return 0;
	at += COMPOUND_RESULTS_AT + (COMPOUND_PREFIX_OPS + ops) * OP_RESULT_LEN;
	len = get_word(r.p + at, 0);
	if (!len || len > FILE_HANDLE_MAX) {
		fail("a file handle of %u bytes", len);
		return 0;
	}
	memcpy(handle, r.p + at + 4, len);
	return len;
}
