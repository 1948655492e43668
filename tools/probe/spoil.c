// SPDX-License-Identifier: GPL-2.0
/*
 * Ways to make a Reply invalid.
 */

#include <string.h>
#include "probe.h"
#include "spoil.h"

/* Truncated within the header. */
bool spoil_length(struct enc *e, const struct call *call, unsigned int way)
{
	static const unsigned int lengths[] = { 0, 4, 8, 12, 15, 16, 20, 24, 27 };

	(void)call;
	if (way >= COUNT(lengths))
		return false;
	e->len = lengths[way];
	return true;
}

/* A word of the chunk lists that is invalid there. */
bool spoil_lists(struct enc *e, const struct call *call, unsigned int way)
{
	static const struct {
		unsigned int word;
		uint32_t value;
	} ways[] = {
		{ HDR_READ_LIST, 1 },
		{ HDR_READ_LIST, 2 },
		{ HDR_WRITE_LIST, 2 },
		{ HDR_WRITE_LIST, 0xffffffff },
		{ WCHUNK_SEGMENTS, 0x7fffffff },
		{ WCHUNK_SEGMENTS, 0x10000000 },
		{ WCHUNK_SEGMENTS, 0xffffffff },
	};

	(void)call;
	if (way >= COUNT(ways))
		return false;
	put_word(e, ways[way].word, ways[way].value);
	return true;
}

/* The returned Write chunk differs from the offered one. */
bool spoil_chunk(struct enc *e, const struct call *call, unsigned int way)
{
	const uint32_t handle = get_word(e->buf, WCHUNK_HANDLE);
	const uint32_t length = get_word(e->buf, WCHUNK_LENGTH);
	const uint32_t offset_low = get_word(e->buf, WCHUNK_OFFSET + 1);
	uint8_t *segment = e->buf + 4 * WCHUNK_HANDLE;

	if (!call->writes)
		return false;
	switch (way) {
	case 0:
		put_word(e, WCHUNK_HANDLE, handle ^ 0x1000);
		return true;
	case 1:
		put_word(e, WCHUNK_LENGTH, call->write.seg[0].length + 4);
		return true;
	case 2:
		put_word(e, WCHUNK_LENGTH, 0xfffffffc);
		return true;
	case 3:
		put_word(e, WCHUNK_OFFSET + 1, offset_low + length + 4);
		return true;
	case 4:
		/* One more segment. A chunk without segments may be an unused one. */
		put_word(e, WCHUNK_SEGMENTS, get_word(e->buf, WCHUNK_SEGMENTS) + 1);
		memmove(segment + SEGMENT_LEN, segment, e->len - 4 * WCHUNK_HANDLE);
		e->len += SEGMENT_LEN;
		return true;
	}
	return false;
}

/* The XID in the payload differs from that in the header. */
bool spoil_xid(struct enc *e, const struct call *call, unsigned int way)
{
	unsigned int w = e->len / 4;

	/* The last word with this value. */
	while (--w && get_word(e->buf, w) != call->xid)
		;
	put_word(e, w, call->xid ^ 0x80000000);
	return way < 1;
}

bool spoil_version(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, HDR_VERS, way ? 2 : 0);
	return way < 2;
}

bool spoil_msgp(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, HDR_PROC, RDMA_MSGP);
	return way < 1;
}

/* An unknown procedure. */
bool spoil_procedure(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, HDR_PROC, way ? 0xffffffff : RDMA_ERROR + 1);
	return way < 2;
}

/* An RDMA_DONE, with and without a body. */
bool spoil_done(struct enc *e, const struct call *call, unsigned int way)
{
	(void)call;
	put_word(e, HDR_PROC, RDMA_DONE);
	if (way)
		e->len = HDR_FIXED_LEN;
	return way < 2;
}

/* An RDMA_ERROR that has an unknown code, or is truncated. */
bool spoil_error(struct enc *e, const struct call *call, unsigned int way)
{
	static const struct {
		uint32_t err;
		unsigned int len;
	} ways[] = {
		{ 9, ERR_CHUNK_LEN }, { 0, ERR_CHUNK_LEN }, { ERR_VERS, ERR_VERS_LEN - 8 },
		{ ERR_VERS, ERR_VERS_LEN - 4 }, { ERR_CHUNK, ERR_CHUNK_LEN - 4 },
	};

	if (way >= COUNT(ways))
		return false;
	e->len = 0;
	enc_error(e, call->xid, ways[way].err);
	e->len = ways[way].len;
	return true;
}
