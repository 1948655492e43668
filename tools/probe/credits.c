// SPDX-License-Identifier: GPL-2.0
/*
 * A server that grants few credits or announces short messages: how many Calls the kernel's
 * client has outstanding, and how long they are.
 */

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "answers.h"
#include "counters.h"
#include "group.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

#define QUIET_MS	500	/* without a Call: the client sends none before a Reply */
#define XID_FLIP	0x80000000	/* turns an XID of the client into one that it does not use */

static struct call held[RECVS];
static struct enc replies[RECVS];
static unsigned int n_held;
static uint32_t last_grant;

/* Holds back all Calls that arrive within @ms of each other, and checks their number. */
static bool hold_more(struct conn *c, int ms)
{
	enum call_event event = CALL_RECEIVED;

	while (n_held < RECVS && event == CALL_RECEIVED) {
		event = next_call(c, &held[n_held], ms);
		n_held += event == CALL_RECEIVED;
	}
	if (event == CALL_INVALID)
		return false;
	if (n_held > (last_grant ? last_grant : 1))
		return fail("%u Calls outstanding, %u were granted", n_held, last_grant);
	return true;
}

/* Holds back this Call, and those that follow. */
static bool hold(struct conn *c, struct call *call, int ms)
{
	n_held = 0;
	held[n_held++] = *call;
	call->rpc = NULL;
	return hold_more(c, ms);
}

/*
 * Answers all of them at once, the last one first. The grant of the Reply that is sent last
 * counts. All others grant one credit, which is always within the window.
 */
static bool answer_all(struct conn *c)
{
	const unsigned long rnr = rnr_count(c);
	struct ibv_wc wc;
	unsigned int i;
	bool ok = true;

	for (i = 0; i < n_held; i++)
		ok = ok && make_reply(c, &held[i], &replies[i]);
	for (i = 1; ok && i < n_held; i++)
		put_word(&replies[i], HDR_CREDITS, 1);
	for (i = 0; i < n_held; i++)
		ok = ok && post_msg(c, &replies[n_held - 1 - i]);
	for (i = 0; ok && i < n_held; i++)
		ok = wait_cq(c->scq, &wc, PATIENCE_MS) && !wc.status ? true :
			fail("no Receive for a Reply");
	while (n_held)
		free_call(&held[--n_held]);
	last_grant = serving.grant;
	return ok && no_rnr_since(c, rnr);
}

/*
 * Grants different numbers of credits. The case is over when each window was used to its end at
 * least once, and the window before it as well. A client that takes the grant of another Reply
 * has a window of one Call; its next Reply, which is alone, corrects that.
 */
static bool credit_window(struct conn *c, struct call *call)
{
	static const uint32_t grants[] = { 1, 3, 32, 2, 24, 1, 8 };
	static unsigned int round, filled;
	static bool was_full;
	bool full;

	if (!is_read(call))
		return answer_correctly(c, call);
	last_grant = round ? last_grant : serving.grant;
	if (!hold(c, call, QUIET_MS))
		return false;
	full = n_held == last_grant;
	filled |= full && was_full ? 1 << round % COUNT(grants) : 0;
	was_full = full;
	serving.call_seen = filled == (1 << COUNT(grants)) - 1;
	serving.grant = grants[round++ % COUNT(grants)];
	return answer_all(c);
}

/* The first 40 READs may include Calls that were sent when there still were credits. */
static bool no_credits(struct conn *c, struct call *call)
{
	static unsigned int reads;

	serving.grant = 0;
	if (!is_read(call) || reads++ == 0)
		return answer_correctly(c, call);
	last_grant = 0;
	if (reads < 40)
		return answer_correctly(c, call);
	serving.call_seen = true;
	return hold(c, call, QUIET_MS / 10) && answer_all(c);
}

#define FEW_CREDITS	4	/* which the client's readers use up */
#define MANY_CREDITS	32
#define FALSE_GRANT	128
#define ROUNDS		8

/* Answers one of the Calls that are held back, if @reply, and sends this message behind it. */
static bool send_behind(struct conn *c, bool reply, const struct enc *e)
{
	if (reply) {
		struct call *call = &held[--n_held];
		const bool ok = make_reply(c, call, replies) && post_msg(c, replies);

		free_call(call);
		if (!ok)
			return false;
	}
	return post_msg(c, e) && (!reply || wait_sent(c)) && wait_sent(c);
}

/*
 * All credits are in use when this message arrives, whose credit field is large. It grants
 * nothing, so no further Call may arrive before a Reply. SUNRPC may look at its window only when
 * an RPC ends. So in all rounds but the first a Reply arrives just before the message.
 */
static bool no_grant_by(struct conn *c, struct call *call, const struct enc *e)
{
	unsigned int round;

	if (serving.call_seen || serving.connections > 1 || !is_read(call))
		return answer_correctly(c, call);
	last_grant = serving.grant;
	serving.grant = FEW_CREDITS;
	if (!hold(c, call, QUIET_MS))
		return false;
	for (round = 0; last_grant == FEW_CREDITS && n_held == FEW_CREDITS && round < ROUNDS;
	     round++) {
		if (!send_behind(c, round, e) || !hold_more(c, QUIET_MS))
			return false;
		if (disconnected(c))
			return fail("the client has disconnected, round %u", round);
	}
	serving.call_seen = round == ROUNDS;
	if (serving.call_seen)
		serving.grant = MANY_CREDITS;
	return answer_all(c);
}

/* An RDMA_ERROR whose XID is unknown: its direction cannot be told. */
static bool no_grant_by_error(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };

	enc_error(&e, call->xid ^ XID_FLIP, ERR_CHUNK);
	put_word(&e, HDR_CREDITS, FALSE_GRANT);
	return no_grant_by(c, call, &e);
}

/* A backchannel Call, whose credit field is a request. */
static bool no_grant_by_xid(struct conn *c, struct call *call, uint32_t xid)
{
	struct enc e = { .len = 0 };

	enc_hdr(&e, xid, RPCRDMA_VERSION, FALSE_GRANT, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_null(&e, xid, CALLBACK);
	return no_grant_by(c, call, &e);
}

static bool no_grant_by_call(struct conn *c, struct call *call)
{
	return no_grant_by_xid(c, call, call->xid ^ XID_FLIP);
}

/* The XID is that of an outstanding Call of the client. */
static bool no_grant_by_same_xid(struct conn *c, struct call *call)
{
	return no_grant_by_xid(c, call, call->xid);
}

/*
 * All credits are in use, and an RDMA_ERROR for one of the Calls grants more. Its RPC ends, and more
 * Calls than before arrive.
 */
static bool grant_by_own_error(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };
	int64_t start;

	if (serving.call_seen || !is_read(call))
		return answer_correctly(c, call);
	last_grant = serving.grant;
	serving.grant = FEW_CREDITS;
	if (!hold(c, call, QUIET_MS))
		return false;
	if (last_grant != FEW_CREDITS || n_held != FEW_CREDITS)
		return answer_all(c);
	enc_error(&e, held[--n_held].xid, ERR_CHUNK);
	put_word(&e, HDR_CREDITS, MANY_CREDITS);
	free_call(&held[n_held]);
	last_grant = serving.grant = MANY_CREDITS;
	if (!post_msg(c, &e) || !wait_sent(c))
		return false;
	start = now_ms();
	while (n_held <= FEW_CREDITS && now_ms() - start < PATIENCE_MS * probe.time_factor)
		if (!hold_more(c, QUIET_MS))
			return false;
	if (n_held <= FEW_CREDITS)
		return fail("%u Calls outstanding, an RDMA_ERROR granted %u", n_held, last_grant);
	serving.call_seen = true;
	return answer_all(c);
}

/* A new connection has one credit until its first Reply. */
static bool first_alone(struct conn *c, struct call *call)
{
	if (serving.connections == 1 && is_read(call)) {
		close_peer();
		return true;
	}
	if (serving.connections == 1 || serving.call_seen)
		return answer_correctly(c, call);
	last_grant = 1;
	serving.call_seen = hold(c, call, 2 * QUIET_MS) && answer_all(c);
	return serving.call_seen;
}

/* The second connection's Receive Size is smaller. */
static bool reconnect_shorter(struct conn *c, struct call *call)
{
	if (serving.connections == 1 && is_write(call)) {
		close_peer();
		return true;
	}
	serving.call_seen |= is_write(call);
	return answer_correctly(c, call);
}

static const struct params *shorter_params(unsigned int connection)
{
	return connection ? &params_1k : &params_default;
}

static bool long_calls(struct conn *c, struct call *call)
{
	serving.call_seen |= call->sent > 1024;
	return answer_correctly(c, call);
}

/* The client requests as many credits as it has slots. */
static bool requested_credits(struct conn *c, struct call *call)
{
	FILE *f = fopen("/proc/sys/sunrpc/rdma_slot_table_entries", "r");
	unsigned int slots = 0;

	serving.call_seen = f && fscanf(f, "%u", &slots) == 1;
	if (f)
		fclose(f);
	if (call->credits != slots)
		return fail("%u credits requested, expected %u", call->credits, slots);
	return answer_correctly(c, call);
}

#define READERS	8

/* Many concurrent READs. Returns EIO if not exactly @failing readers get an error. */
static int run_readers(int failing)
{
	int i, status, failed = 0;

	for (i = 0; i < READERS; i++)
		if (!fork()) {
			for (i = 0, status = 0; !status && i < 3; i++)
				status = read_file();
			_exit(status);
		}
	while (wait(&status) > 0)
		failed += !WIFEXITED(status) || WEXITSTATUS(status);
	return failed == failing ? 0 : EIO;
}

static int many_readers(void)
{
	return run_readers(0);
}

static int one_reader_fails(void)
{
	return run_readers(1);
}

static int write_little(void)
{
	return write_and_read(MOUNTPOINT "/little", 1, 3000, 3000);
}

/* The first WRITE fits in 4096 bytes, and not in 1024. */
static int every_procedure(void)
{
	int status = write_little();

	status = status ? status : write_file();
	status = status ? status : read_file();
	status = status ? status : stat_file();
	return status ? status : list_directory();
}

#define SMALL_READS	"rsize=4096,wsize=4096"

static const struct test tests[] = {
	{ "R8166-3.3.1-3 R8166-3.3.1-6 R8166-3.3.1-7 R8166-3.3.1-9 R8166-3.3-1",
	  "as many Calls as were granted last", .answer = credit_window, .work = many_readers,
	  .mount_options = SMALL_READS },
	{ "R8166-3.3.1-5", "zero credits count as one", .answer = no_credits,
	  .work = many_readers, .mount_options = SMALL_READS },
	{ "R8167-4.1-5", "an unsolicited RDMA_ERROR grants nothing",
	  .answer = no_grant_by_error, .work = many_readers, .mount_options = SMALL_READS },
	{ "-", "an RDMA_ERROR for an outstanding Call grants credits",
	  .answer = grant_by_own_error, .work = one_reader_fails, .mount_options = SMALL_READS },
	{ "R8167-4.1-4", "a backchannel Call grants nothing",
	  .answer = no_grant_by_call, .work = many_readers, .mount_options = SMALL_READS },
	{ "R8167-2.4-1", "a backchannel Call with a forward XID grants nothing",
	  .answer = no_grant_by_same_xid, .work = many_readers, .mount_options = SMALL_READS },
	{ "R8166-3.3.1-1", "requested credits", .answer = requested_credits, .work = read_file },
	{ "R8166-3.3.3-3 R8166-4.5.5-1", "one Call before the first Reply",
	  .answer = first_alone, .work = many_readers, .mount_options = SMALL_READS,
	  .min_connections = 2 },
	{ "R8166-3.3.3-5 R8797-5.1-1 CM0-4-1", "1024 bytes without private data",
	  .work = every_procedure, .params = &params_no_private },
	{ "R8166-3.3.2-1 R8797-4.2-2 CM0-2.1-1", "1024 bytes if the Receive Size is 1024",
	  .work = every_procedure, .params = &params_1k },
	{ "R8797-4-1", "a smaller Receive Size on the next connection",
	  .answer = reconnect_shorter, .work = every_procedure, .params_of = shorter_params,
	  .min_connections = 2 },
	{ "R8166-3.3.2-1", "more than 1024 bytes if agreed",
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
