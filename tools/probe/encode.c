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

void call(struct enc *e, uint32_t xid, uint32_t proc)
{
	u32(e, xid);
	u32(e, 0);
	u32(e, 2);
	u32(e, 100003);
	u32(e, 4);
	u32(e, proc);
	/* AUTH_SYS, root */
	u32(e, 1);
	u32(e, 24);
	u32(e, 0);
	string(e, "pro");
	u32(e, 0);
	u32(e, 0);
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

void compound(struct enc *e, uint32_t xid, unsigned int ops)
{
	call(e, xid, 1);
	string(e, "");
	u32(e, 0);
	u32(e, ops + 2);
	u32(e, PUTROOTFH);
	u32(e, LOOKUP);
	string(e, dir);
}

void op_lookup(struct enc *e, const char *name)
{
	u32(e, LOOKUP);
	string(e, name);
}

void anonymous(struct enc *e)
{
	u64(e, 0);
	u64(e, 0);
}

void op_read(struct enc *e, uint64_t off, uint32_t count)
{
	u32(e, READ);
	anonymous(e);
	u64(e, off);
	u32(e, count);
}

/* All of a WRITE but the data's octets; returns where they belong. */
unsigned int op_write(struct enc *e, uint64_t off, uint32_t count)
{
	u32(e, WRITE);
	anonymous(e);
	u64(e, off);
	u32(e, 2);
	u32(e, count);
	return e->n;
}
