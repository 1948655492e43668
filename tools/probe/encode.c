// SPDX-License-Identifier: GPL-2.0
/*
 * Messages, word by word.
 */

#include "probe.h"

void enc_u32(struct enc *e, uint32_t v)
{
	v = htonl(v);
	memcpy(e->b + e->n, &v, 4);
	e->n += 4;
}

void enc_u64(struct enc *e, uint64_t v)
{
	enc_u32(e, v >> 32);
	enc_u32(e, v);
}

void enc_bytes(struct enc *e, const void *p, unsigned int n)
{
	memcpy(e->b + e->n, p, n);
	e->n += n;
}

void enc_opaque(struct enc *e, const void *p, unsigned int n)
{
	static const uint8_t zero[4];

	enc_u32(e, n);
	enc_bytes(e, p, n);
	enc_bytes(e, zero, -n & 3);
}

void enc_string(struct enc *e, const char *s)
{
	enc_opaque(e, s, strlen(s));
}

uint32_t get_word(const uint8_t *p, unsigned int word)
{
	uint32_t v;

	memcpy(&v, p + 4 * word, 4);
	return ntohl(v);
}

void put_word(struct enc *e, unsigned int word, uint32_t v)
{
	v = htonl(v);
	memcpy(e->b + 4 * word, &v, 4);
}

void enc_hdr(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc)
{
	enc_u32(e, xid);
	enc_u32(e, vers);
	enc_u32(e, credits);
	enc_u32(e, proc);
}

/* The header of a Call. */
void enc_call_hdr(struct enc *e, uint32_t xid, uint32_t proc)
{
	enc_hdr(e, xid, RPCRDMA_VERSION, CREDITS, proc);
}

void enc_seg(struct enc *e, uint32_t handle, uint32_t len, uint64_t off)
{
	enc_u32(e, handle);
	enc_u32(e, len);
	enc_u64(e, off);
}

void enc_rseg(struct enc *e, uint32_t pos, uint32_t handle, uint32_t len, uint64_t off)
{
	enc_u32(e, 1);
	enc_u32(e, pos);
	enc_seg(e, handle, len, off);
}

void enc_no_chunks(struct enc *e)
{
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
}

/* A Call of the NULL procedure, by nobody. */
void enc_null(struct enc *e, uint32_t xid, uint32_t program)
{
	enc_u32(e, xid);
	enc_u32(e, 0);
	enc_u32(e, 2);
	enc_u32(e, program);
	enc_u32(e, 1);
	enc_u32(e, 0);
	enc_u64(e, 0);
	enc_u64(e, 0);
}

/* An RDMA_ERROR; ERR_VERS says that there is only version 1. */
void enc_error(struct enc *e, uint32_t xid, uint32_t err)
{
	enc_hdr(e, xid, RPCRDMA_VERSION, 1, RDMA_ERROR);
	enc_u32(e, err);
	if (err == ERR_VERS)
		enc_u64(e, 0x100000001);
}

/* All of an RPC Reply but the results. */
void enc_accepted(struct enc *e, uint32_t xid, uint32_t accept_stat)
{
	enc_u32(e, xid);
	enc_u32(e, 1);
	enc_u32(e, 0);
	enc_u64(e, 0);
	enc_u32(e, accept_stat);
}
