// SPDX-License-Identifier: GPL-2.0
/*
 * A client that is called by its server, which recalls delegations.
 */

#include "compat.h"

#define SEQ4_STATUS_CB_PATH_DOWN	0x001		/* SEQ4_STATUS_CB_PATH_DOWN */
#define SEQ4_STATUS_BACKCHANNEL_FAULT		0x400		/* SEQ4_STATUS_BACKCHANNEL_FAULT */
#define REASONS		3		/* to call, at most */
#define SURELY		(7000 * probe.time_factor)	/* ms; nfsd gives a Call up in more: guest.sh */

/* So many ms late nfsd learns that a connection is lost: before any machine takes that for dead. */
#define LATE		(3000 + 500 * probe.time_factor)
#define SLOWLY		"insmod /probe/delay_fn.ko function=nfsd4_conn_lost entry=1 delay_ms=%d"

/* Who takes the answer to a Call of the server's wakes so many ms late who waits for it. */
#define WAKES_LATE	(1000 + 200 * probe.time_factor)
#define WAKE_LATE	"insmod /probe/delay_fn.ko delay_ms=%d,0,0 limit=1 entry=1,1,1 function=" \
			"rpc_wake_up_queued_task,rpc_shutdown_client,xprt_free_slot"
#define TRIES		8

static bool t_reverse_call(struct conn *c)
{
	struct reply back = { .p = NULL };
	struct enc e;
	uint32_t flags;
	int i;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	enc_recall_reply(&e, &back, 1);
	if (!send_msg(c, &e))
		return false;
	for (i = 0; i < 5; i++) {
		usleep(100000);
		if (!sequence_status(c, &flags, NULL))
			return false;
		if (flags)
			return fail("status %x", flags);
	}
	return alive(c);
}

/* As many Calls as are granted, and the Reply to the server's, all at a time. */
static bool t_all_together(struct conn *c)
{
	struct reply back = { .p = NULL }, r;
	struct enc e, answer;
	struct ibv_wc wc;
	bool seen[RECVS] = { false };
	uint32_t flags, granted, first;
	unsigned int i, n, at;
	unsigned long before;
	int64_t called_at;
	int ms;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	called_at = now_ms();
	if (!sequence_status(c, &flags, &granted))
		return false;
	before = rnr_count(c);
	n = granted < RECVS - MAX_CALLBACKS ? granted : RECVS - MAX_CALLBACKS;
	first = probe.next_xid;
	enc_recall_reply(&answer, &back, 1);
	for (i = 0; i < n; i++) {
		const uint32_t xid = new_xid();

		enc_null_call(&e, xid);
		if (!post_msg(c, &e))
			return false;
	}
	if (!post_msg(c, &answer))
		return false;
	for (i = 0; i <= n; i++)
		if (!wait_cq(c->scq, &wc, 3000) || wc.status)
			return fail("Send %u found no Receive", i);
	for (i = 0; i < n; i++)
		if (!next_forward_reply(c, &r) || !answers_one(&r, first, n, seen, &at))
			return fail("%u of %u answered: %s", i, n, probe.reason);
	if (!sequence_status(c, &flags, NULL))
		return false;
	/* On iWARP what is sent need not have arrived: what is behind it is looked at. */
	ms = now_ms() - called_at;
	if (flags && ms > SURELY)
		return skip("nfsd may have given its Call up before it was answered");
	if (flags)
		return fail("status %x, %d ms after the Call", flags, ms);
	return no_rnr_since(c, before) && alive(c);
}

/* The next Call of the server, past Replies; false if there is none for so long. */
static bool next_reverse(struct conn *c, struct reply *back, int ms)
{
	do {
		if (!get_reply(c, back, ms) || !back->any)
			return false;
	} while (get_word(back->p + 28, RPC_TYPE));
	return true;
}

/* No other Calls than these come, though they may come again. */
static bool none_but(struct conn *c, const uint32_t *outstanding, unsigned int n)
{
	const int64_t start = now_ms();
	struct reply back;
	unsigned int i;

	while (now_ms() - start < 1500 && next_reverse(c, &back, 1500 / probe.time_factor)) {
		if (!new_or_retransmitted(&back))
			return false;
		for (i = 0; i < n && outstanding[i] != get_word(back.p, HDR_XID); i++)
			;
		if (i == n)
			return fail("more than %u Calls at a time, after a stray error", n);
	}
	return true;
}

/*
 * With so many reasons to call, the server calls as often at a time as it was granted, and
 * as it has asked for. To repeat a Call that was not answered is to call once. For one Call
 * too many it is waited a second and a half on the slowest of machines too: nfsd itself gives
 * up in nine, or so many times as long.
 */
static bool as_granted(struct conn *c, unsigned int credits, unsigned int reasons)
{
	struct reply back = { .p = NULL };
	char files[REASONS][FILE_NAME_LEN];
	uint32_t outstanding[8];
	struct enc e, stray = { .len = 0 };
	unsigned int i, turn, most, n = 0;

	if (!get_recall(c, &back))
		return false;
	most = get_word(back.p, HDR_CREDITS) < credits ? get_word(back.p, HDR_CREDITS) : credits;
	enc_recall_reply(&e, &back, credits);
	if (!send_msg(c, &e))
		return false;
	for (i = 0; i < reasons; i++)
		if (!get_delegation(c, files[i]))
			return false;
	for (i = 0; i < reasons; i++)
		if (!write_as_other_client(c, files[i]))
			return false;
	for (turn = 0; turn < COUNT(outstanding); turn++) {
		if (!next_reverse(c, &back, n < most ? 1500 : 1500 / probe.time_factor))
			break;
		if (!new_or_retransmitted(&back))
			return false;
		for (i = 0; i < n && outstanding[i] != get_word(back.p, HDR_XID); i++)
			;
		if (i < n)
			continue;
		outstanding[n++] = get_word(back.p, HDR_XID);
		enc_recall_reply(&e, &back, credits);
	}
	if (n != most)
		return fail("%u Calls at a time, with %u credits", n, most);
	/* Nobody has called by this number, so that it is no grant of anything. */
	enc_hdr(&stray, get_word(e.buf, HDR_XID) ^ 0x80000000, 1, COUNT(outstanding), RDMA_ERROR);
	enc_u32(&stray, ERR_CHUNK);
	if (n < reasons && (!send_msg(c, &stray) || !none_but(c, outstanding, n)))
		return false;
	/* Another one where there was none left. */
	if (!send_msg(c, &e))
		return false;
	if (n == reasons)
		return true;
	if (!next_reverse(c, &back, 5000))
		return fail("it does not call again");
	return new_or_retransmitted(&back);
}

static bool t_one_at_a_time(struct conn *c)
{
	return as_granted(c, 1, 2);
}

static bool t_two_at_a_time(struct conn *c)
{
	return as_granted(c, 2, 2);
}

/* The server was told (guest.sh) to ask for two. */
static bool t_more_than_asked(struct conn *c)
{
	return as_granted(c, 0xffffffff, REASONS);
}

/*
 * The server need not wait for what will not come. It gives up after a while whatever is
 * said: what it says of its backchannel later shows nothing.
 * It calls again, at any time.
 */
static bool t_reverse_refused(struct conn *c)
{
	struct reply back = { .p = NULL };
	struct enc e = { .len = 0 };
	int64_t called_at;
	uint32_t flags;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	called_at = now_ms();
	/* Nobody has called by this number. */
	enc_hdr(&e, get_word(back.p, HDR_XID) ^ 0x80000000, 1, 1, RDMA_ERROR);
	enc_u32(&e, ERR_CHUNK);
	if (!send_msg(c, &e) || !sequence_status(c, &flags, NULL))
		return false;
	if (flags)
		return fail("status %x", flags);
	e.len = 0;
	enc_hdr(&e, get_word(back.p, HDR_XID), 1, 1, RDMA_ERROR);
	enc_u32(&e, ERR_CHUNK);
	if (!send_msg(c, &e))
		return false;
	for (;;) {
		if (!sequence_status(c, &flags, NULL))
			return false;
		if (now_ms() - called_at > SURELY)
			return fail("the server still waits");
		if (flags & (SEQ4_STATUS_CB_PATH_DOWN | SEQ4_STATUS_BACKCHANNEL_FAULT))
			return sequence_status(c, &flags, NULL);
		usleep(100000);
	}
}

/* Until the server says that it cannot call, or for so many ms. */
static bool has_given_up(struct conn *c, int ms)
{
	const int64_t start = now_ms();
	uint32_t flags;

	do {
		if (!sequence_status(c, &flags, NULL))
			return false;
		if (flags & (SEQ4_STATUS_CB_PATH_DOWN | SEQ4_STATUS_BACKCHANNEL_FAULT))
			return true;
		usleep(20000);
	} while (now_ms() - start < ms);
	return fail("the server still waits after %d ms", ms);
}

/*
 * A Call ends with its connection. nfsd itself gives up what it has called over one that is lost,
 * and looks for another: it is held up meanwhile, so that what ends the Call is the transport.
 */
static bool t_call_lost(struct conn *c)
{
	struct conn *lost = conn_open(&params_default);
	struct reply back = { .p = NULL };
	char slowly[100];
	uint32_t flags;
	bool ok;

	ok = lost && get_recall(lost, &back) && is_callback(&back) && sequence_status(c, &flags, NULL);
	if (ok && flags)
		ok = fail("status %x", flags);
	snprintf(slowly, sizeof(slowly), SLOWLY, LATE);
	if (ok && system(slowly))
		ok = skip("nfsd cannot be held up");
	conn_close(lost);
	if (!ok)
		return false;
	ok = has_given_up(c, LATE - 1000);
	if (system("rmmod delay_fn"))
		return fail("nfsd is held up for ever");
	return ok && alive(c);
}

/* How often Calls were given up, and freed, while somebody was about to wake who waits. */
static bool meanwhile(unsigned int *given_up, unsigned int *freed)
{
	FILE *f = fopen("/sys/module/delay_fn/parameters/concurrent", "r");
	const bool ok = f && fscanf(f, "%*u,%u,%u", given_up, freed) == 2;

	if (f)
		fclose(f);
	return ok ? true : fail("what hesitates does not say what happened meanwhile");
}

/* The server takes an answer, and gives up what it had called at the same time, if it comes so. */
static bool answer_too_late(struct conn *c, unsigned int *given_up, unsigned int *freed)
{
	struct reply back = { .p = NULL }, r;
	char late[200];
	struct enc e;
	bool ok;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	enc_recall_reply(&e, &back, 1);
	snprintf(late, sizeof(late), WAKE_LATE, WAKES_LATE);
	if (system(late))
		return skip("nobody can be held up");
	ok = post_msg(c, &e) && post_backchannel_ctl(c) && wait_sent(c) && wait_sent(c) && next_forward_reply(c, &r);
	/* By then whoever took the answer, which came first, does not hesitate any more. */
	usleep(1000 * WAKES_LATE);
	ok = ok && meanwhile(given_up, freed);
	if (system("rmmod delay_fn"))
		return fail("who wakes is held up for ever");
	return ok;
}

/* A Call that is given up stays where it is until whoever takes its answer is done with it. */
static bool t_given_up(struct conn *unused)
{
	unsigned int given_up = 0, freed = 0, i;

	(void)unused;
	for (i = 0; i < TRIES && !given_up; i++) {
		struct conn *c = conn_open(&params_default);
		const bool ok = c && answer_too_late(c, &given_up, &freed);

		conn_close(c);
		if (!ok)
			return false;
	}
	if (freed)
		return fail("a Call was freed while its answer was taken");
	return given_up ? true : fail("no Call was given up while its answer was taken");
}

static const struct test tests[] = {
	{ "R8167-5.1-2 R8167-5.1-3 R8167-5.1-4 R8167-6-2", "a Call of the server",
	  t_reverse_call },
	{ "R8167-4.3.2-1 R8167-4.3.2-2", "all Calls and a Reply at a time", t_all_together },
	{ "R8167-4.1-3 R8167-4.1-5", "one credit for Calls of the server", t_one_at_a_time },
	{ "R8167-4.1-3 R8167-5.1-1", "two credits for them", t_two_at_a_time },
	{ "-", "more credits than it has asked for", t_more_than_asked },
	{ "R8167-5.3-4", "a Call of the server, refused", t_reverse_refused },
	{ "R8167-5.4-1", "a Call of the server whose connection is lost", t_call_lost },
	{ "-", "a Call of the server that is given up while it is answered", t_given_up },
};

const struct group group_session = {
	.name = "session", .about = "a client that is called by its server",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
