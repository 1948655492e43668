// SPDX-License-Identifier: GPL-2.0
/*
 * Messages, word by word.
 */

#include <arpa/inet.h>
#include <string.h>
#include "encode.h"

uint32_t get_word(const uint8_t *p, unsigned int word)
{
	uint32_t value;

	memcpy(&value, p + 4 * word, 4);
	return ntohl(value);
}

uint64_t get_dword(const uint8_t *p, unsigned int word)
{
	return (uint64_t)get_word(p, word) << 32 | get_word(p, word + 1);
}

/* Overwrites a word. */
void put_word(struct enc *e, unsigned int word, uint32_t value)
{
	value = htonl(value);
	memcpy(e->buf + 4 * word, &value, 4);
}

void enc_u32(struct enc *e, uint32_t value)
{
	value = htonl(value);
	memcpy(e->buf + e->len, &value, 4);
	e->len += 4;
}

void enc_u64(struct enc *e, uint64_t value)
{
	enc_u32(e, value >> 32);
	enc_u32(e, value);
}

void enc_bytes(struct enc *e, const void *p, unsigned int n)
{
	memcpy(e->buf + e->len, p, n);
	e->len += n;
}

void enc_opaque(struct enc *e, const void *p, unsigned int n)
{
	static const uint8_t zero[4];

	enc_u32(e, n);
	enc_bytes(e, p, n);
	enc_bytes(e, zero, xdr_pad(n));
}

void enc_string(struct enc *e, const char *s)
{
	enc_opaque(e, s, strlen(s));
}

void enc_hdr(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc)
{
	enc_u32(e, xid);
	enc_u32(e, vers);
	enc_u32(e, credits);
	enc_u32(e, proc);
}

/* The header of a Call that requests CREDITS. */
void enc_call_hdr(struct enc *e, uint32_t xid, uint32_t proc)
{
	enc_hdr(e, xid, RPCRDMA_VERSION, CREDITS, proc);
}

void enc_seg(struct enc *e, uint32_t handle, uint32_t length, uint64_t offset)
{
	enc_u32(e, handle);
	enc_u32(e, length);
	enc_u64(e, offset);
}

/* An item of the Read list. */
void enc_rseg(struct enc *e, uint32_t position, uint32_t handle, uint32_t length,
	      uint64_t offset)
{
	enc_u32(e, 1);
	enc_u32(e, position);
	enc_seg(e, handle, length, offset);
}

/* The start of a Write chunk or Reply chunk, whose segments follow. */
void enc_chunk_head(struct enc *e, unsigned int segments)
{
	enc_u32(e, 1);
	enc_u32(e, segments);
}

/* A Write chunk or Reply chunk of one segment. */
void enc_wchunk(struct enc *e, uint32_t handle, uint32_t length, uint64_t offset)
{
	enc_chunk_head(e, 1);
	enc_seg(e, handle, length, offset);
}

/* The end of a Read list or Write list, which may be empty. */
void enc_list_end(struct enc *e)
{
	enc_u32(e, 0);
}

void enc_no_reply_chunk(struct enc *e)
{
	enc_u32(e, 0);
}

/* The end of a Read list that may be empty, an empty Write list, and no Reply chunk. */
void enc_no_chunks(struct enc *e)
{
	enc_list_end(e);
	enc_list_end(e);
	enc_no_reply_chunk(e);
}

/* An RDMA_ERROR; ERR_VERS says that only version 1 is supported. */
void enc_error(struct enc *e, uint32_t xid, uint32_t err)
{
	enc_hdr(e, xid, RPCRDMA_VERSION, 1, RDMA_ERROR);
	enc_u32(e, err);
	if (err == ERR_VERS) {
		enc_u32(e, RPCRDMA_VERSION);
		enc_u32(e, RPCRDMA_VERSION);
	}
}

/* A Call of the NULL procedure with AUTH_NONE. */
void enc_rpc_null(struct enc *e, uint32_t xid, uint32_t program)
{
	enc_u32(e, xid);
	enc_u32(e, RPC_CALL);
	enc_u32(e, 2);
	enc_u32(e, program);
	enc_u32(e, 1);
	enc_u32(e, 0);
	enc_u64(e, 0);
	enc_u64(e, 0);
}

/* An accepted RPC Reply with AUTH_NONE, up to its results. */
void enc_rpc_reply(struct enc *e, uint32_t xid, uint32_t accept_stat)
{
	enc_u32(e, xid);
	enc_u32(e, RPC_REPLY);
	enc_u32(e, 0);
	enc_u64(e, 0);
	enc_u32(e, accept_stat);
}

/* The capacity of a chunk. */
unsigned int chunk_len(const struct chunk *chunk)
{
	unsigned int i, len = 0;

	for (i = 0; i < chunk->n; i++)
		len += chunk->seg[i].length;
	return len;
}

/* The XDR roundup of an item. */
unsigned int xdr_pad(unsigned int len)
{
	return -len & 3;
}

unsigned int xdr_align(unsigned int len)
{
	return len + xdr_pad(len);
}
