// SPDX-License-Identifier: GPL-2.0
/*
 * A server that exposes its Replies for the kernel's client to pull
 * (Documentation/pulled-replies.rst), rightly and wrongly. The client says RDMA_DONE
 * once for each; one that it cannot take ends its RPC and nothing else.
 */

#include <signal.h>
#include <sys/wait.h>
#include "compat.h"

#define EXPOSED		(AREA / 2)	/* where in the area the Replies are */
#define SOON		300		/* ms, in which what is sent has arrived */

/* RDMA_DONEs that are to come, by XID. */
static struct {
	uint32_t xid;
	unsigned int n;
} owed[RECVS];

static void is_owed_nothing(void)
{
	memset(owed, 0, sizeof(owed));
}

static void owes(uint32_t xid)
{
	static unsigned int last;
	unsigned int i;

	if (last != serving.case_number)
		is_owed_nothing();
	last = serving.case_number;
	for (i = 0; i < COUNT(owed) - 1 && owed[i].n && owed[i].xid != xid; i++)
		;
	owed[i].xid = xid;
	owed[i].n++;
	serving.call_seen = false;
}

/* The case is over when none is owed any more. */
static bool told(const struct call *call)
{
	unsigned int i, left = 0;
	bool known = false;

	if (call->sent != 16 || !call->credits)
		return fail("RDMA_DONE of %u octets, %u credits", call->sent, call->credits);
	for (i = 0; i < COUNT(owed); i++) {
		if (owed[i].n && owed[i].xid == call->xid && !known) {
			known = true;
			owed[i].n--;
		}
		left += owed[i].n;
	}
	serving.call_seen = !left;
	return known ? true : fail("RDMA_DONE for %x, which is not exposed", call->xid);
}

static void add(struct conn *c, struct chunk *x, unsigned int from, uint32_t len)
{
	x->seg[x->n++] = (struct segment) {
		.handle = c->area_mr->rkey, .length = len, .offset = area_addr(c, EXPOSED + from),
	};
}

static bool announce(struct conn *c, uint32_t xid, const struct chunk *x, uint32_t position)
{
	struct enc e = { .len = 0 };
	unsigned int i;

	enc_hdr(&e, xid, 1, serving.grant, RDMA_NOMSG);
	for (i = 0; i < x->n; i++)
		enc_rseg(&e, position, x->seg[i].handle, x->seg[i].length, x->seg[i].offset);
	enc_no_chunks(&e);
	owes(xid);
	return send_msg(c, &e);
}

/* The Reply lies so many octets behind the start; its length, or 0. */
static unsigned int lay(struct conn *c, struct call *call, unsigned int behind)
{
	unsigned int len;
	const uint8_t *reply = reference_reply(c, call, &len);

	if (!reply)
		return 0;
	memcpy(c->area + EXPOSED + behind, reply, len);
	return len;
}

/* Replies that there is a Reply chunk for have to go there, and do. */
static bool expose(struct conn *c, struct call *call)
{
	struct chunk x = { .n = 0 };
	unsigned int len;

	if (call->reply.n)
		return answer_correctly(c, call);
	len = lay(c, call, 0);
	add(c, &x, 0, len);
	return len && announce(c, call->xid, &x, 0);
}

/* Everything that can be pulled: how a Reply of this length is cut. */
typedef void (*cut_fn)(struct conn *c, struct chunk *x, unsigned int len);

static bool cut(struct conn *c, struct call *call, unsigned int behind, cut_fn how)
{
	struct chunk x = { .n = 0 };
	unsigned int len;

	if (call->reply.n)
		return answer_correctly(c, call);
	len = lay(c, call, behind);
	if (!len)
		return false;
	how(c, &x, len);
	return announce(c, call->xid, &x, 0);
}

static void whole(struct conn *c, struct chunk *x, unsigned int len)
{
	add(c, x, 0, len);
}

static void odd(struct conn *c, struct chunk *x, unsigned int len)
{
	add(c, x, 3, 1);
	add(c, x, 4, 6);
	add(c, x, 10, 77);
	add(c, x, 87, len - 84);
}

static void with_empty_ones(struct conn *c, struct chunk *x, unsigned int len)
{
	add(c, x, 0, 0);
	add(c, x, 0, 40);
	add(c, x, 40, 0);
	add(c, x, 40, len - 40);
	add(c, x, len, 0);
}

/* That it was accepted, and the flavor of its verifier: both are 0, and one stands for both. */
static void overlapping(struct conn *c, struct chunk *x, unsigned int len)
{
	add(c, x, 0, 12);
	add(c, x, 8, 4);
	add(c, x, 16, len - 16);
}

static void sixteen(struct conn *c, struct chunk *x, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < 15; i++)
		add(c, x, 4 * i, 4);
	add(c, x, 60, len - 60);
}

static bool pull_whole(struct conn *c, struct call *call)
{
	return cut(c, call, 0, whole);
}

static bool pull_odd(struct conn *c, struct call *call)
{
	return cut(c, call, 3, odd);
}

static bool pull_with_empty_ones(struct conn *c, struct call *call)
{
	return cut(c, call, 0, with_empty_ones);
}

static bool pull_overlapping(struct conn *c, struct call *call)
{
	return cut(c, call, 0, overlapping);
}

static bool pull_sixteen(struct conn *c, struct call *call)
{
	return cut(c, call, 0, sixteen);
}

/* The first listing is answered by a Reply that cannot be pulled, all others by one that can. */
static bool spoiled(struct conn *c, struct call *call, cut_fn how, uint32_t position)
{
	static unsigned int last;
	struct chunk x = { .n = 0 };
	unsigned int len;

	if (last == serving.case_number)
		return expose(c, call);
	last = serving.case_number;
	len = lay(c, call, 0);
	if (!len)
		return false;
	how(c, &x, len);
	return announce(c, call->xid, &x, position);
}

static void four_gib(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add(c, x, 0, 0xffffffff);
}

static void more_than_32_bits(struct conn *c, struct chunk *x, unsigned int len)
{
	add(c, x, 0, len);
	add(c, x, 0, 0x80000000);
	add(c, x, 0, 0x80000000);
}

static void nothing(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add(c, x, 0, 0);
	add(c, x, 0, 0);
}

static void three_octets(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add(c, x, 0, 3);
}

/* More than any consumer has room for; the memory is there. */
static void too_long(struct conn *c, struct chunk *x, unsigned int len)
{
	(void)len;
	add(c, x, 0, AREA / 2);
}

static void too_many(struct conn *c, struct chunk *x, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < 39; i++)
		add(c, x, 4 * i, 4);
	add(c, x, 4 * i, len);
}

#define SPOILED(how, position)								\
	static bool spoiled_##how(struct conn *c, struct call *call)			\
	{										\
		return spoiled(c, call, how, position);					\
	}

SPOILED(four_gib, 0)
SPOILED(more_than_32_bits, 0)
SPOILED(nothing, 0)
SPOILED(three_octets, 0)
SPOILED(too_long, 0)
SPOILED(too_many, 0)
SPOILED(whole, 4)

/* A READ whose data is in the Write chunk, if one believes it, and the rest exposed. */
static bool reduced(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };
	unsigned int i;

	enc_hdr(&e, call->xid, 1, serving.grant, RDMA_NOMSG);
	enc_rseg(&e, 0, c->area_mr->rkey, 128, area_addr(c, EXPOSED));
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, call->write.n);
	for (i = 0; i < call->write.n; i++)
		enc_seg(&e, call->write.seg[i].handle, call->write.seg[i].length,
			call->write.seg[i].offset);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	owes(call->xid);
	return send_msg(c, &e);
}

/* A tag of nobody's costs the connection. On the next nothing is owed for it. */
static bool no_tag(struct conn *c, struct call *call)
{
	static unsigned int last;
	struct chunk x = { .n = 0 };

	if (last == serving.case_number) {
		is_owed_nothing();
		return expose(c, call);
	}
	last = serving.case_number;
	add(c, &x, 0, lay(c, call, 0));
	x.seg[0].handle ^= 0x5a5a00;
	return announce(c, call->xid, &x, 0);
}

static bool stray(struct conn *c, struct call *call)
{
	struct chunk x = { .n = 0 };

	add(c, &x, 0, 4096);
	return announce(c, call->xid ^ 0x80000000, &x, 0) && expose(c, call);
}

static bool twice(struct conn *c, struct call *call)
{
	return expose(c, call) && expose(c, call);
}

/* A Read list in a Reply that has a payload: not understood, and not answered. */
static bool beside_payload(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };

	enc_hdr(&e, call->xid, 1, serving.grant, RDMA_MSG);
	enc_rseg(&e, 0, c->area_mr->rkey, 4096, area_addr(c, EXPOSED));
	enc_no_chunks(&e);
	enc_rpc_reply(&e, call->xid, 0);
	return send_msg(c, &e) && expose(c, call);
}

/* The first is answered when its task is gone, and somebody else asks. */
static bool too_late(struct conn *c, struct call *call)
{
	static uint32_t waits;
	static unsigned int last;
	struct chunk x = { .n = 0 };

	if (last != serving.case_number) {
		last = serving.case_number;
		waits = call->xid;
		return true;
	}
	if (waits) {
		add(c, &x, 0, 4096);
		if (!announce(c, waits, &x, 0))
			return false;
		waits = 0;
	}
	return expose(c, call);
}

/*
 * That it speaks another version only is for good, with a Reply chunk or without. That it cannot
 * expose this Reply is not.
 */
static bool refuse_version(struct conn *c, struct call *call)
{
	return is_listing(call) ? refuse_once(c, call, ERR_VERS) : answer_correctly(c, call);
}

/* RDMA_DONEs are looked at for as long as there is work. */
static int and_wait(int status)
{
	usleep(1000 * SOON * probe.time_factor);
	return status;
}

static int list(void)
{
	return and_wait(list_directory());
}

static int list_twice(void)
{
	const int status = list_directory();

	if (status != EIO)
		return status ? status : ENOTUNIQ;
	return and_wait(list_directory());
}

static int read_in_vain(void)
{
	return and_wait(read_file());
}

static int list_and_die(void)
{
	const pid_t child = fork();

	if (!child)
		_exit(list_directory());
	usleep(1000 * SOON * probe.time_factor);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return list();
}

/* What is told of goes by for all cases; they are about listings, and data that is READ. */
static bool others(struct conn *c, struct call *call, bool *ok)
{
	if (call->proc == RDMA_DONE)
		*ok = told(call);
	else if (is_listing(call) || (is_read(call) && call->writes == 1))
		return false;
	else
		*ok = answer_correctly(c, call);
	return true;
}

static bool fits(const struct conn *c)
{
	return !is_iwarp(c) || peer_pulls(c) ? true : skip("over iWARP the client pulls no Replies");
}

static const struct test tests[] = {
	{ "RR4-4.1.2-1 RR4-4.1.3-1", "Replies that are exposed", .answer = pull_whole,
	  .work = list },
	{ "RR4-4.1-1", "segments of any length, anywhere", .answer = pull_odd,
	  .work = list },
	{ "RR4-4.1-1", "empty segments among others", .answer = pull_with_empty_ones,
	  .work = list },
	{ "RR4-4.1-1", "sixteen segments", .answer = pull_sixteen,
	  .work = list },
	{ "RR4-5.4.2-1", "overlapping segments", .answer = pull_overlapping,
	  .work = list },
	{ "RR4-5.4.2-1", "4 GiB", .answer = spoiled_four_gib,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "more than 4 GiB", .answer = spoiled_more_than_32_bits,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "nothing", .answer = spoiled_nothing,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "three octets", .answer = spoiled_three_octets,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "more than there is room for", .answer = spoiled_too_long,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "forty segments", .answer = spoiled_too_many,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "another Position", .answer = spoiled_whole,
	  .work = list_twice },
	{ "RR4-5.4.2-1", "a reduced Reply", .answer = reduced,
	  .work = read_in_vain, .work_errno = EIO },
	{ "RR4-5.4.2-1", "beside a chunk that has room for it", .answer = pull_whole,
	  .work = read_in_vain, .work_errno = EIO },
	{ "RR4-4.1.2-2", "a tag of nobody's", .answer = no_tag,
	  .work = list, .min_connections = 2 },
	{ "RR4-4.1.3-3", "an XID that nobody has used", .answer = stray,
	  .work = list },
	{ "RR4-4.1.3-3", "an RPC that was given up", .answer = too_late,
	  .work = list_and_die },
	{ "RR4-4.1.3-3", "each Reply twice", .answer = twice,
	  .work = list },
	{ "R8166-4.5-7", "ERR_VERS", .answer = refuse_version, .work = list, .work_errno = EIO },
	{ "R8166-4.3.1-3", "a Read list beside a payload", .answer = beside_payload,
	  .work = list },
};

const struct group group_exposer = {
	.name = "exposer", .about = "a server that exposes its Replies, rightly and wrongly",
	.tests = tests, .n = COUNT(tests), .params = &params_pulled, .answer_other = others,
	.client_supports = fits,
};
