// SPDX-License-Identifier: GPL-2.0
/*
 * Messages, word by word.
 */

#include "probe.h"

void u32(struct enc *e, uint32_t v)
{
	v = htonl(v);
	memcpy(e->b + e->n, &v, 4);
	e->n += 4;
}

void u64(struct enc *e, uint64_t v)
{
	u32(e, v >> 32);
	u32(e, v);
}

void bytes(struct enc *e, const void *p, unsigned int n)
{
	memcpy(e->b + e->n, p, n);
	e->n += n;
}

void opaque(struct enc *e, const void *p, unsigned int n)
{
	static const uint8_t zero[4];

	u32(e, n);
	bytes(e, p, n);
	bytes(e, zero, -n & 3);
}

void string(struct enc *e, const char *s)
{
	opaque(e, s, strlen(s));
}

uint32_t get(const uint8_t *p, unsigned int word)
{
	uint32_t v;

	memcpy(&v, p + 4 * word, 4);
	return ntohl(v);
}

void put(struct enc *e, unsigned int word, uint32_t v)
{
	v = htonl(v);
	memcpy(e->b + 4 * word, &v, 4);
}

void hdr(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc)
{
	u32(e, xid);
	u32(e, vers);
	u32(e, credits);
	u32(e, proc);
}

void seg(struct enc *e, uint32_t handle, uint32_t len, uint64_t off)
{
	u32(e, handle);
	u32(e, len);
	u64(e, off);
}

void rseg(struct enc *e, uint32_t pos, uint32_t handle, uint32_t len, uint64_t off)
{
	u32(e, 1);
	u32(e, pos);
	seg(e, handle, len, off);
}

void lists_none(struct enc *e)
{
	u32(e, 0);
	u32(e, 0);
	u32(e, 0);
}

/* A Call of the NULL procedure, by nobody. */
void null(struct enc *e, uint32_t xid, uint32_t program)
{
	u32(e, xid);
	u32(e, 0);
	u32(e, 2);
	u32(e, program);
	u32(e, 1);
	u32(e, 0);
	u64(e, 0);
	u64(e, 0);
}

/* An RDMA_ERROR; ERR_VERS says that there is only version 1. */
void error(struct enc *e, uint32_t xid, uint32_t err)
{
	hdr(e, xid, 1, 1, ERROR);
	u32(e, err);
	if (err == ERR_VERS)
		u64(e, 0x100000001);
}

/* All of an RPC Reply but the results. */
void accepted(struct enc *e, uint32_t xid, uint32_t accept_stat)
{
	u32(e, xid);
	u32(e, 1);
	u32(e, 0);
	u64(e, 0);
	u32(e, accept_stat);
}
