// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of NFSv4.0, and the header of any.
 */

#include "probe.h"

void enc_rpc_call(struct enc *e, uint32_t xid, uint32_t version, uint32_t proc)
{
	enc_u32(e, xid);
	enc_u32(e, 0);
	enc_u32(e, 2);
	enc_u32(e, 100003);
	enc_u32(e, version);
	enc_u32(e, proc);
	/* AUTH_SYS, root */
	enc_u32(e, 1);
	enc_u32(e, 24);
	enc_u32(e, 0);
	enc_string(e, "pro");
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
}

void enc_nfs4_call(struct enc *e, uint32_t xid, uint32_t proc)
{
	enc_rpc_call(e, xid, 4, proc);
}

void enc_compound(struct enc *e, uint32_t xid, unsigned int ops)
{
	enc_nfs4_call(e, xid, 1);
	enc_string(e, "");
	enc_u32(e, 0);
	enc_u32(e, ops + 2);
	enc_u32(e, PUTROOTFH);
	enc_u32(e, LOOKUP);
	enc_string(e, dir);
}

void enc_lookup(struct enc *e, const char *name)
{
	enc_u32(e, LOOKUP);
	enc_string(e, name);
}

void enc_anonymous(struct enc *e)
{
	enc_u64(e, 0);
	enc_u64(e, 0);
}

void enc_read(struct enc *e, uint64_t off, uint32_t count)
{
	enc_u32(e, READ);
	enc_anonymous(e);
	enc_u64(e, off);
	enc_u32(e, count);
}

/* All of a WRITE but the data's octets; returns where they belong. */
unsigned int enc_write(struct enc *e, uint64_t off, uint32_t count)
{
	enc_u32(e, WRITE);
	enc_anonymous(e);
	enc_u64(e, off);
	enc_u32(e, 2);
	enc_u32(e, count);
	return e->n;
}

/* All of a message that calls the null procedure, inline. */
void enc_null_call(struct enc *e, uint32_t xid)
{
	e->n = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_no_chunks(e);
	enc_nfs4_call(e, xid, 0);
}

/* A READ of the beginning of the file, with a Write chunk of one segment for its data. */
void enc_read_call(struct enc *e, uint32_t xid, uint32_t handle, uint32_t room, uint64_t at,
		   uint32_t count)
{
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_u32(e, 0);
	enc_u32(e, 1);
	enc_u32(e, 1);
	enc_seg(e, handle, room, at);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_compound(e, xid, 2);
	enc_lookup(e, "probe");
	enc_read(e, 0, count);
}

/* The header of a Call with a Reply chunk of one segment, and no other. */
void enc_reply_chunk_hdr(struct enc *e, uint32_t xid, uint32_t handle, uint32_t room, uint64_t at)
{
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 1);
	enc_u32(e, 1);
	enc_seg(e, handle, room, at);
}

/* A WRITE to the beginning of the file, with a Read chunk of one segment for its data. */
void enc_write_call(struct enc *e, uint32_t xid, uint32_t handle, uint64_t at, uint32_t count)
{
	struct enc m = { .n = 0 };
	unsigned int position;

	enc_compound(&m, xid, 2);
	enc_lookup(&m, "probe");
	position = enc_write(&m, 0, count);
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_rseg(e, position, handle, count, at);
	enc_no_chunks(e);
	enc_bytes(e, m.b, m.n);
}
