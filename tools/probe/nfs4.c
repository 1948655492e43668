// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of NFSv4.0, and the header of any.
 */

#include "probe.h"

void call_of(struct enc *e, uint32_t xid, uint32_t version, uint32_t proc)
{
	u32(e, xid);
	u32(e, 0);
	u32(e, 2);
	u32(e, 100003);
	u32(e, version);
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

void call(struct enc *e, uint32_t xid, uint32_t proc)
{
	call_of(e, xid, 4, proc);
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

/* All of a message that calls the null procedure, inline. */
void null_call(struct enc *e, uint32_t xid)
{
	e->n = 0;
	hdr(e, xid, 1, 32, MSG);
	lists_none(e);
	call(e, xid, 0);
}

/* A READ of the beginning of the file, with a Write chunk of one segment for its data. */
void read_to(struct enc *e, uint32_t xid, uint32_t handle, uint32_t room, uint64_t at,
	     uint32_t count)
{
	hdr(e, xid, 1, 32, MSG);
	u32(e, 0);
	u32(e, 1);
	u32(e, 1);
	seg(e, handle, room, at);
	u32(e, 0);
	u32(e, 0);
	compound(e, xid, 2);
	op_lookup(e, "probe");
	op_read(e, 0, count);
}

/* The header of a Call with a Reply chunk of one segment, and no other. */
void offer_reply(struct enc *e, uint32_t xid, uint32_t handle, uint32_t room, uint64_t at)
{
	hdr(e, xid, 1, 32, MSG);
	u32(e, 0);
	u32(e, 0);
	u32(e, 1);
	u32(e, 1);
	seg(e, handle, room, at);
}

/* A WRITE to the beginning of the file, with a Read chunk of one segment for its data. */
void write_from(struct enc *e, uint32_t xid, uint32_t handle, uint64_t at, uint32_t count)
{
	struct enc m = { .n = 0 };
	unsigned int position;

	compound(&m, xid, 2);
	op_lookup(&m, "probe");
	position = op_write(&m, 0, count);
	hdr(e, xid, 1, 32, MSG);
	rseg(e, position, handle, count, at);
	lists_none(e);
	bytes(e, m.b, m.n);
}
