// SPDX-License-Identifier: GPL-2.0
/*
 * A client whose handles are those of memory windows. Unlike the handle of an MR that user space
 * has registered, they can be invalidated by a Send, and the device reports which one was.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "counters.h"
#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

#define WINDOWS	16
#define ROOM	8192u		/* bytes of each */
#define SEVERAL	3

static struct ibv_mw *windows[WINDOWS];

static void free_windows(void)
{
	unsigned int i;

	for (i = 0; i < WINDOWS; i++)
		if (windows[i])
			ibv_dealloc_mw(windows[i]);
	memset(windows, 0, sizeof(windows));
}

/* Binds a new window to its part of the area. */
static bool bind_window(struct conn *c, unsigned int i)
{
	struct ibv_mw *mw = ibv_alloc_mw(c->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (!mw && errno == EOPNOTSUPP)
		return skip("the device has no memory windows for user space");
	if (!mw)
		return fail("ibv_alloc_mw: %s", strerror(errno));
	windows[i] = mw;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = c->area_mr;
	wr.bind_mw.bind_info.addr = area_addr(c, i * ROOM);
	wr.bind_mw.bind_info.length = ROOM;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		return fail("ibv_post_send: %s", strerror(errno));
	if (!wait_cq(c->scq, &wc, PATIENCE_MS) || wc.status)
		return fail("binding a memory window failed");
	mw->rkey = wr.bind_mw.rkey;
	return true;
}

static bool with_windows(struct conn *c, unsigned int n, bool (*run)(struct conn *c))
{
	unsigned int i;
	bool ok = true;

	for (i = 0; i < n && ok; i++)
		ok = bind_window(c, i);
	ok = ok && run(c);
	free_windows();
	return ok;
}

/* Only a server that has announced Remote Invalidation may use it (RFC 8797 Section 4.1). */
static bool is_agreed(struct conn *c, const struct reply *r)
{
	if (r->invalidated && !peer_may_invalidate(c))
		return fail("handle %x is invalidated by a server that did not announce this",
			    r->invalidated_rkey);
	return true;
}

/* A READ of different length for each window. */
static void enc_window_read(struct conn *c, struct enc *e, uint32_t xid, unsigned int i)
{
	const struct segment data = {
		.handle = windows[i]->rkey, .length = ROOM, .offset = area_addr(c, i * ROOM),
	};

	e->len = 0;
	enc_read_call(e, xid, &data, 100 * (i + 1));
}

/* Checks that the data is in the window, and that the Reply invalidates it or nothing. */
static bool check_window_read(struct conn *c, const struct reply *r, uint32_t xid, unsigned int i)
{
	unsigned int at;

	if (!reply_body(r, xid, &at) || !compound_ok(r->p + at, 2) || !is_agreed(c, r))
		return false;
	if (r->invalidated && r->invalidated_rkey != windows[i]->rkey)
		return fail("handle %x is invalidated, expected %x", r->invalidated_rkey,
			    windows[i]->rkey);
	return check_pattern("data", c->area + i * ROOM, 0, 100 * (i + 1));
}

/* A server may always use plain Sends (RFC 8797 Section 4.1). Then the case tests nothing. */
static bool skip_plain(void)
{
	return skip("the server's Replies are plain Sends, which is allowed");
}

static bool one(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e;
	struct reply r;

	enc_window_read(c, &e, xid, 0);
	if (!exchange(c, &e, &r) || !check_window_read(c, &r, xid, 0))
		return false;
	return r.invalidated ? true : skip_plain();
}

/* Concurrent Calls. The Replies may arrive in any order. */
static bool concurrent(struct conn *c)
{
	const unsigned long before = rnr_count(c);
	const uint32_t first = probe.next_xid;
	bool seen[WINDOWS] = { false };
	struct reply r;
	struct enc e;
	unsigned int i, at, plain = 0;

	for (i = 0; i < WINDOWS; i++) {
		enc_window_read(c, &e, new_xid(), i);
		if (!post_msg(c, &e))
			return false;
	}
	for (i = 0; i < WINDOWS; i++) {
		if (!get_reply(c, &r, PATIENCE_MS) || !r.any)
			return fail("%u of %u Replies: %s", i, WINDOWS, probe.reason);
		if (!answers_one(&r, first, WINDOWS, seen, &at) ||
		    !check_window_read(c, &r, get_word(r.p, HDR_XID),
				       get_word(r.p, HDR_XID) - first))
			return false;
		plain += !r.invalidated;
	}
	for (i = 0; i < WINDOWS; i++)
		if (!wait_sent(c))
			return false;
	if (!no_rnr_since(c, before))
		return false;
	if (plain == WINDOWS)
		return skip_plain();
	if (plain)
		printf("# %u of %u Replies are plain Sends\n", plain, WINDOWS);
	return true;
}

/* The server invalidates any of the Call's handles, or none. */
static bool one_of_several(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int at, i, w = HDR_WRITE_LIST;
	struct reply r;

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	enc_chunk_head(&e, SEVERAL);
	for (i = 0; i < SEVERAL; i++)
		enc_seg(&e, windows[i]->rkey, ROOM, area_addr(c, i * ROOM));
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, SEVERAL * ROOM);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 2) ||
	    !is_agreed(c, &r))
		return false;
	for (i = 0; i < SEVERAL && r.invalidated; i++)
		if (r.invalidated_rkey == windows[i]->rkey)
			break;
	if (i == SEVERAL)
		return fail("handle %x is invalidated, which is not of this Call",
			    r.invalidated_rkey);
	if (!same_chunk_returned(&r, &w, &e, SEVERAL * ROOM) ||
	    !check_pattern("data", c->area, 0, SEVERAL * ROOM))
		return false;
	return r.invalidated ? true : skip_plain();
}

/* A Call without chunks, behind a Call with a handle. */
static bool none(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e;
	unsigned int at;
	struct reply r;

	enc_null_call(&e, xid);
	if (!one(c) || !exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	return r.invalidated ? fail("handle %x is invalidated by a Reply to a Call without chunks",
				    r.invalidated_rkey) : true;
}

static bool t_one(struct conn *c) { return with_windows(c, 1, one); }
static bool t_concurrent(struct conn *c) { return with_windows(c, WINDOWS, concurrent); }
static bool t_one_of_several(struct conn *c) { return with_windows(c, SEVERAL, one_of_several); }
static bool t_none(struct conn *c) { return with_windows(c, 1, none); }

static const struct test tests[] = {
	{ "R8797-4.1-1 RI3-1-1 RI3-3-1", "the handle of the Call is invalidated", t_one },
	{ "R8797-4.1-2 RI3-3.2-1 RI3-4.6-1",
	  "the Reply to each of many Calls invalidates that Call's handle", t_concurrent },
	{ "R8797-4.1-2 RI3-2.3-1", "one of several handles is invalidated", t_one_of_several },
	{ "R8797-4.1-2", "nothing is invalidated if the Call has no handle", t_none },
};

const struct group group_memory_windows = {
	.name = "memory_windows",
	.about = "a client whose memory windows are invalidated by Replies",
	.tests = tests, .n = COUNT(tests), .params = &params_remote_inv, .open = conn_open,
};
