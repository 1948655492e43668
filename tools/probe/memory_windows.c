// SPDX-License-Identifier: GPL-2.0
/*
 * A client whose handles are those of memory windows: unlike plain registrations they
 * can be invalidated by a Send, and the device says of which one it was.
 */

#include "compat.h"

#define WINDOWS	16
#define ROOM	8192u

static struct ibv_mw *windows[WINDOWS];

static void release_windows(void)
{
	unsigned int i;

	for (i = 0; i < WINDOWS; i++)
		if (windows[i])
			ibv_dealloc_mw(windows[i]);
	memset(windows, 0, sizeof(windows));
}

/* A window for its part of the area, by a handle that it did not have before. */
static bool open_window(struct conn *c, unsigned int i)
{
	struct ibv_mw *mw = ibv_alloc_mw(c->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (!mw && errno == EOPNOTSUPP)
		return skip("the device has no memory windows for processes");
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
		return fail("binding a window: %s", strerror(errno));
	if (!wait_cq(c->scq, &wc, 3000) || wc.status)
		return fail("a window could not be bound");
	mw->rkey = wr.bind_mw.rkey;
	return true;
}

static bool with_windows(struct conn *c, unsigned int n, bool (*run)(struct conn *c))
{
	unsigned int i;
	bool ok = true;

	for (i = 0; i < n && ok; i++)
		ok = open_window(c, i);
	ok = ok && run(c);
	release_windows();
	return ok;
}

/* Only who has said so invalidates (RFC 8797 Section 4.1). */
static bool is_agreed(struct conn *c, const struct reply *r)
{
	if (r->invalidated && !peer_may_invalidate(c))
		return fail("handle %x was invalidated by who says that it does not",
			    r->invalidated_rkey);
	return true;
}

/* The data of a READ is in this window, and the Reply has invalidated that or none. */
static bool in_window(struct conn *c, const struct reply *r, uint32_t xid, unsigned int i)
{
	unsigned int at;

	if (!reply_body(r, xid, &at) || !compound_ok(r->p + at, 2) || !is_agreed(c, r))
		return false;
	if (r->invalidated && r->invalidated_rkey != windows[i]->rkey)
		return fail("handle %x was invalidated instead of %x", r->invalidated_rkey,
			    windows[i]->rkey);
	return check_pattern("the file", c->area + i * ROOM, 0, 100 * (i + 1));
}

/* A server may use plain Sends all the same (RFC 8797 Section 4.1), which shows nothing. */
static bool plainly(void)
{
	return skip("its Replies are plain Sends, which they may be");
}

static bool one(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	struct reply r;

	old_enc_read_call(&e, xid, windows[0]->rkey, ROOM, area_addr(c, 0), 100);
	if (!exchange(c, &e, &r) || !in_window(c, &r, xid, 0))
		return false;
	return r.invalidated ? true : plainly();
}

/* All Calls first: the Replies may come in any order. */
static bool each_its_own(struct conn *c)
{
	const unsigned long before = rnr_count(c);
	const uint32_t first = probe.next_xid;
	bool seen[WINDOWS] = { false };
	struct reply r;
	struct ibv_wc wc;
	unsigned int i, at, plain = 0;

	for (i = 0; i < WINDOWS; i++) {
		struct enc e = { .len = 0 };

		old_enc_read_call(&e, new_xid(), windows[i]->rkey, ROOM, area_addr(c, i * ROOM),
			      100 * (i + 1));
		if (!post_msg(c, &e))
			return false;
	}
	for (i = 0; i < WINDOWS; i++) {
		if (!get_reply(c, &r, 5000) || !r.any)
			return fail("%u of %u answered: %s", i, WINDOWS, probe.reason);
		if (!answers_one(&r, first, WINDOWS, seen, &at) ||
		    !in_window(c, &r, get_word(r.p, HDR_XID), get_word(r.p, HDR_XID) - first))
			return false;
		plain += !r.invalidated;
	}
	for (i = 0; i < WINDOWS; i++)
		if (!wait_cq(c->scq, &wc, 1000) || wc.status)
			return fail("a Send failed");
	if (!no_rnr_since(c, before))
		return false;
	if (plain == WINDOWS)
		return plainly();
	if (plain)
		printf("# %u of %u Replies are plain Sends\n", plain, WINDOWS);
	return true;
}

/* Which of several is left to the server; it may also leave them all to the client. */
static bool one_of_several(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int at, i, w = 5;
	struct reply r;

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, 3);
	for (i = 0; i < 3; i++)
		enc_seg(&e, windows[i]->rkey, ROOM, area_addr(c, i * ROOM));
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 3 * ROOM);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 2) ||
	    !is_agreed(c, &r))
		return false;
	for (i = 0; i < 3 && r.invalidated; i++)
		if (r.invalidated_rkey == windows[i]->rkey)
			break;
	if (i == 3)
		return fail("handle %x was invalidated", r.invalidated_rkey);
	if (!chunk_returned(&r, &w, e.buf + 4 * w, 3 * ROOM) || !check_pattern("the file", c->area, 0, 3 * ROOM))
		return false;
	return r.invalidated ? true : plainly();
}

/* A Reply without any, between those that have some. */
static bool none(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int at;
	struct reply r;

	enc_null_call(&e, xid);
	if (!one(c) || !exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	return r.invalidated ? fail("handle %x was invalidated", r.invalidated_rkey) : true;
}

static bool t_one(struct conn *c) { return with_windows(c, 1, one); }
static bool t_each_its_own(struct conn *c) { return with_windows(c, WINDOWS, each_its_own); }
static bool t_one_of_several(struct conn *c) { return with_windows(c, 3, one_of_several); }
static bool t_none(struct conn *c) { return with_windows(c, 1, none); }

static const struct test tests[] = {
	{ "R8797-4.1-1 RI3-1-1 RI3-3-1", "the handle of the Call", t_one },
	{ "R8797-4.1-2 RI3-3.2-1 RI3-4.6-1", "of many Calls at a time, each its own",
	  t_each_its_own },
	{ "R8797-4.1-2 RI3-2.3-1", "of several handles, one of them", t_one_of_several },
	{ "R8797-4.1-2", "of no handle, none", t_none },
};

const struct group group_memory_windows = {
	.name = "memory_windows", .about = "a client whose memory is invalidated by Replies",
	.tests = tests, .n = COUNT(tests), .params = &params_remote_inv, .open = conn_open,
};
