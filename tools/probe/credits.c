// SPDX-License-Identifier: GPL-2.0
/*
 * How many Calls at a time the kernel's client makes, and how long they are.
 */

#include <sys/wait.h>
#include "compat.h"

#define QUIET	500	/* ms without a Call: no other one comes before an answer */

static struct call held[RECVS];
static struct enc made[RECVS];
static unsigned int n_held;
static uint32_t last;		/* granted */

/* All Calls that come before any of those that are held is answered. */
static bool gather_more(struct conn *c, int ms)
{
	enum call_event came = CALL_RECEIVED;

	while (n_held < RECVS && came == CALL_RECEIVED) {
		came = next_call(c, &held[n_held], ms);
		n_held += came == CALL_RECEIVED;
	}
	if (came == CALL_INVALID)
		return false;
	if (n_held > (last ? last : 1))
		return fail("%u Calls at a time, %u were granted", n_held, last);
	return true;
}

/* This Call and those. */
static bool gather(struct conn *c, struct call *call, int ms)
{
	n_held = 0;
	held[n_held++] = *call;
	call->rpc = NULL;
	return gather_more(c, ms);
}

/*
 * Answers them all at a time, the last one first. The grant that counts is that of the Reply
 * that is sent last; the others grant one, which is never too many.
 */
static bool answer_all(struct conn *c)
{
	const unsigned long early = rnr_count(c);
	struct ibv_wc wc;
	unsigned int i;
	bool ok = true;

	for (i = 0; i < n_held; i++)
		ok = ok && make_reply(c, &held[i], &made[i]);
	for (i = 1; ok && i < n_held; i++)
		put_word(&made[i], 2, 1);
	for (i = 0; i < n_held; i++)
		ok = ok && post_msg(c, &made[n_held - 1 - i]);
	for (i = 0; ok && i < n_held; i++)
		ok = wait_cq(c->scq, &wc, 3000) && !wc.status ? true : fail("no Receive for a Reply");
	while (n_held)
		free_call(&held[--n_held]);
	last = serving.grant;
	return ok && no_rnr_since(c, early);
}

static bool windows(struct conn *c, struct call *call)
{
	static const uint32_t grants[] = { 1, 3, 32, 2, 24, 1, 8 };
	static unsigned int turn, filled;
	static bool was_full;
	bool full;

	if (!is_read(call))
		return answer_correctly(c, call);
	last = turn ? last : serving.grant;
	if (!gather(c, call, QUIET))
		return false;
	full = n_held == last;
	filled |= full && was_full ? 1 << turn % COUNT(grants) : 0;
	was_full = full;
	/*
	 * Each window was used to its end, once at least, and so was the one before: who takes
	 * another Reply's grant has a window of one, and the next Reply, alone, puts that right.
	 */
	serving.call_seen = filled == (1 << COUNT(grants)) - 1;
	serving.grant = grants[turn++ % COUNT(grants)];
	return answer_all(c);
}

static bool no_credits(struct conn *c, struct call *call)
{
	static unsigned int turn;

	serving.grant = 0;
	if (!is_read(call) || turn++ == 0)
		return answer_correctly(c, call);
	last = 0;
	/* Those that were under way when there were credits. */
	if (turn < 40)
		return answer_correctly(c, call);
	serving.call_seen = true;
	return gather(c, call, QUIET / 10) && answer_all(c);
}

#define FEW	4	/* credits, of which all are soon in use */
#define MANY	32
#define NO_GRANT	128
#define TURNS	8

/* One of those that are held is answered, if so, and this comes on its heels. */
static bool send_behind(struct conn *c, bool answered, const struct enc *e)
{
	if (answered) {
		struct call *call = &held[--n_held];
		const bool ok = make_reply(c, call, made) && post_msg(c, made);

		free_call(call);
		if (!ok)
			return false;
	}
	return post_msg(c, e) && (!answered || wait_sent(c)) && wait_sent(c);
}

/*
 * All credits are in use when this comes, and it speaks of more. It is no grant: no other Call
 * comes before an answer. SUNRPC may look at its window only when a Call ends, so in all turns
 * but the first one Call does, between its Reply's grant and that.
 */
static bool misled(struct conn *c, struct call *call, const struct enc *e)
{
	unsigned int turn;

	if (serving.call_seen || serving.connections > 1 || !is_read(call))
		return answer_correctly(c, call);
	last = serving.grant;
	serving.grant = FEW;
	if (!gather(c, call, QUIET))
		return false;
	for (turn = 0; last == FEW && n_held == FEW && turn < TURNS; turn++) {
		if (!send_behind(c, turn, e) || !gather_more(c, QUIET))
			return false;
		if (disconnected(c))
			return fail("the connection has ended, turn %u", turn);
	}
	serving.call_seen = turn == TURNS;
	if (serving.call_seen)
		serving.grant = MANY;
	return answer_all(c);
}

/* An error that nobody has asked for: which direction it belongs to is not known. */
static bool misled_by_error(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };

	enc_error(&e, call->xid ^ 0x80000000, ERR_CHUNK);
	put_word(&e, 2, NO_GRANT);
	return misled(c, call, &e);
}

/* What a Call of the server asks for. */
static bool misled_by(struct conn *c, struct call *call, uint32_t xid)
{
	struct enc e = { .len = 0 };

	enc_hdr(&e, xid, 1, NO_GRANT, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_null(&e, xid, CALLBACK);
	return misled(c, call, &e);
}

static bool misled_by_call(struct conn *c, struct call *call)
{
	return misled_by(c, call, call->xid ^ 0x80000000);
}

/* It has the XID of a Call that waits, and is no Reply to that. */
static bool misled_by_twin(struct conn *c, struct call *call)
{
	return misled_by(c, call, call->xid);
}

/* Before its first Reply a connection is good for one Call. */
static bool first_alone(struct conn *c, struct call *call)
{
	if (serving.connections == 1 && is_read(call)) {
		close_peer();
		return true;
	}
	if (serving.connections == 1 || serving.call_seen)
		return answer_correctly(c, call);
	last = 1;
	serving.call_seen = gather(c, call, 2 * QUIET) && answer_all(c);
	return serving.call_seen;
}

/* The next connection is for shorter messages. */
static bool then_shorter(struct conn *c, struct call *call)
{
	if (serving.connections == 1 && is_write(call)) {
		close_peer();
		return true;
	}
	serving.call_seen |= is_write(call);
	return answer_correctly(c, call);
}

static const struct params *shorter(unsigned int number)
{
	return number ? &params_1k : &params_default;
}

static bool long_calls(struct conn *c, struct call *call)
{
	serving.call_seen |= call->sent > 1024;
	return answer_correctly(c, call);
}

/* As many as the client has slots. */
static bool asks(struct conn *c, struct call *call)
{
	FILE *f = fopen("/proc/sys/sunrpc/rdma_slot_table_entries", "r");
	unsigned int slots = 0;

	serving.call_seen = f && fscanf(f, "%u", &slots) == 1;
	if (f)
		fclose(f);
	if (call->credits != slots)
		return fail("%u credits are asked for, %u are wanted", call->credits, slots);
	return answer_correctly(c, call);
}

/* Many READs at a time. */
static int many_readers(void)
{
	int i, status, result = 0;

	for (i = 0; i < 8; i++)
		if (!fork()) {
			for (i = 0, status = 0; !status && i < 3; i++)
				status = read_file();
			_exit(status);
		}
	while (wait(&status) > 0)
		result = WIFEXITED(status) && !WEXITSTATUS(status) ? result : EIO;
	return result;
}

static int write_little(void)
{
	return write_and_read(MOUNTPOINT "/little", 1, 3000, 3000);
}

/* The first WRITE fits in 4096 octets, and not in 1024. */
static int all_sorts(void)
{
	int status = write_little();

	status = status ? status : write_file();
	status = status ? status : read_file();
	status = status ? status : stat_file();
	return status ? status : list_directory();
}

#define SMALL	"rsize=4096,wsize=4096"

static const struct test tests[] = {
	{ "R8166-3.3.1-3 R8166-3.3.1-6 R8166-3.3.1-7 R8166-3.3.1-9 R8166-3.3-1",
	  "as many Calls as were granted last", .answer = windows, .work = many_readers,
	  .mount_options = SMALL },
	{ "R8166-3.3.1-5", "no credits are one", .answer = no_credits, .work = many_readers,
	  .mount_options = SMALL },
	{ "R8167-4.1-5", "credits of an error that nobody has asked for",
	  .answer = misled_by_error, .work = many_readers, .mount_options = SMALL },
	{ "R8167-4.1-4", "credits that a Call of the server asks for",
	  .answer = misled_by_call, .work = many_readers, .mount_options = SMALL },
	{ "R8167-2.4-1", "credits that a Call with a known XID asks for",
	  .answer = misled_by_twin, .work = many_readers, .mount_options = SMALL },
	{ "R8166-3.3.1-1", "credits are asked for", .answer = asks, .work = read_file },
	{ "R8166-3.3.3-3 R8166-4.5.5-1", "one Call before the first Reply",
	  .answer = first_alone, .work = many_readers, .mount_options = SMALL, .min_connections = 2 },
	{ "R8166-3.3.3-5 R8797-5.1-1 CM0-4-1", "1024 octets where no more is agreed on",
	  .work = all_sorts, .params = &params_no_private },
	{ "R8166-3.3.2-1 R8797-4.2-2 CM0-2.1-1", "1024 octets where no more is agreed to",
	  .work = all_sorts, .params = &params_1k },
	{ "R8797-4-1", "fewer octets on the next connection",
	  .answer = then_shorter, .work = all_sorts, .params_of = shorter, .min_connections = 2 },
	{ "R8166-3.3.2-1", "more octets where they are agreed on",
	  .answer = long_calls, .work = write_little },
	{ "R8797-4-3", "all Reserved bits set",
	  .answer = long_calls, .work = write_little, .params = &params_reserved_bits },
	{ "R8797-5.2-1", "private data behind other data",
	  .answer = long_calls, .work = write_little, .params = &params_prefixed },
};

const struct group group_credits = {
	.name = "credits", .about = "a server with few credits, and short messages",
	.tests = tests, .n = COUNT(tests),
};
