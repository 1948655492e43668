// SPDX-License-Identifier: GPL-2.0
/*
 * NFSv4.0 Calls.
 */

#include "nfs4.h"
#include "probe.h"

#define AUTH_SYS	1
#define AUTH_SYS_LEN	24	/* bytes of the credential */
#define FILE_SYNC4	2

/* An NFS Call by root, up to its arguments. */
void enc_rpc_call(struct enc *e, uint32_t xid, uint32_t version, uint32_t proc)
{
	enc_u32(e, xid);
	enc_u32(e, RPC_CALL);
	enc_u32(e, 2);
	enc_u32(e, NFS_PROGRAM);
	enc_u32(e, version);
	enc_u32(e, proc);
	/* Credential: stamp, machine name, uid, gid, no more gids. */
	enc_u32(e, AUTH_SYS);
	enc_u32(e, AUTH_SYS_LEN);
	enc_u32(e, 0);
	enc_string(e, "pro");
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
	/* Verifier: AUTH_NONE. */
	enc_u32(e, 0);
	enc_u32(e, 0);
}

void enc_nfs4_call(struct enc *e, uint32_t xid, uint32_t proc)
{
	enc_rpc_call(e, xid, 4, proc);
}

/* A compound in probe.dir, up to the first of @ops operations. */
void enc_compound(struct enc *e, uint32_t xid, unsigned int ops)
{
	enc_nfs4_call(e, xid, NFSPROC4_COMPOUND);
	enc_string(e, "");
	enc_u32(e, 0);
	enc_u32(e, COMPOUND_PREFIX_OPS + ops);
	enc_u32(e, PUTROOTFH);
	enc_lookup(e, probe.dir);
}

void enc_lookup(struct enc *e, const char *name)
{
	enc_u32(e, LOOKUP);
	enc_string(e, name);
}

static void enc_anonymous_stateid(struct enc *e)
{
	enc_u64(e, 0);
	enc_u64(e, 0);
}

void enc_read(struct enc *e, uint64_t offset, uint32_t count)
{
	enc_u32(e, READ);
	enc_anonymous_stateid(e);
	enc_u64(e, offset);
	enc_u32(e, count);
}

/* A WRITE without its data. Returns where the data belongs: the Position of its Read chunk. */
unsigned int enc_write(struct enc *e, uint64_t offset, uint32_t count)
{
	enc_u32(e, WRITE);
	enc_anonymous_stateid(e);
	enc_u64(e, offset);
	enc_u32(e, FILE_SYNC4);
	enc_u32(e, count);
	return e->len;
}

/* A complete message: a NULL Call, inline. */
void enc_null_call(struct enc *e, uint32_t xid)
{
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_no_chunks(e);
	enc_nfs4_call(e, xid, NFSPROC4_NULL);
}

/* A compound without chunks, up to the first of @ops operations. */
void enc_compound_call(struct enc *e, uint32_t xid, unsigned int ops)
{
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_no_chunks(e);
	enc_compound(e, xid, ops);
}

/* A READ from the start of the file, without chunks. */
void enc_inline_read_call(struct enc *e, uint32_t xid, uint32_t count)
{
	enc_compound_call(e, xid, 2);
	enc_lookup(e, "probe");
	enc_read(e, 0, count);
}

/* The header of a Call with a Reply chunk of one segment. */
void enc_reply_chunk_hdr(struct enc *e, uint32_t xid, const struct segment *reply)
{
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_list_end(e);
	enc_list_end(e);
	enc_wchunk(e, reply->handle, reply->length, reply->offset);
}

/* A READ from the start of the file, with a Write chunk of one segment. */
void enc_read_call(struct enc *e, uint32_t xid, const struct segment *data, uint32_t count)
{
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_list_end(e);
	enc_wchunk(e, data->handle, data->length, data->offset);
	enc_list_end(e);
	enc_no_reply_chunk(e);
	enc_compound(e, xid, 2);
	enc_lookup(e, "probe");
	enc_read(e, 0, count);
}

/* A WRITE of the segment's length to the start of the file, with a Read chunk of one segment. */
void enc_write_call(struct enc *e, uint32_t xid, const struct segment *data)
{
	struct enc rpc = { .len = 0 };
	unsigned int position;

	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, 0, data->length);
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_rseg(e, position, data->handle, data->length, data->offset);
	enc_no_chunks(e);
	enc_bytes(e, rpc.buf, rpc.len);
}
