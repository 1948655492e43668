// SPDX-License-Identifier: GPL-2.0
/*
 * Mutated conversations, in batches. A batch is a case of its own, and what is sent in
 * it comes from the seed and its number alone. Connections may end. After each batch
 * the other end serves a peer that is sane, or asks it.
 */

#include <sys/mman.h>
#include <sys/wait.h>
#include "compat.h"

#define BATCH	2000	/* messages */
#define TOGETHER 16	/* messages, after which the server is asked whether it has seen them */
#define AT_ONCE	24	/* mutated Replies to a Call, at most */
#define ROOM	(128 << 10)	/* for a Reply that is exposed */

static unsigned int messages, lost, pulled;

/* Mostly little: moving it takes the longest, and is not what this is about. */
static unsigned int some_size(void)
{
	return 1 + random_below(random_below(8) ? 512 : 8192);
}

/* Those that were posted have been received. */
static bool all_sent(struct conn *c, unsigned int n)
{
	while (n && wait_sent(c))
		n--;
	return !n;
}

static void read_list(struct conn *c, struct enc *e, struct enc *m, uint32_t xid)
{
	const unsigned int size = some_size();
	unsigned int pos, n, i;

	enc_compound(m, xid, 2);
	enc_lookup(m, "fuzzed");
	pos = enc_write(m, 0, size);
	n = 1 + random_below(3);
	enc_call_hdr(e, xid, RDMA_MSG);
	for (i = 0; i < n; i++)
		enc_rseg(e, pos, c->area_mr->rkey, i < n - 1 ? size / n : size - i * (size / n),
			 area_addr(c, i * (size / n)));
	enc_no_chunks(e);
}

static void position_zero(struct conn *c, struct enc *e, struct enc *m, uint32_t xid)
{
	enc_compound(m, xid, 1);
	enc_lookup(m, "probe");
	memcpy(c->area + AREA / 2, m->buf, m->len);
	enc_call_hdr(e, xid, RDMA_NOMSG);
	enc_rseg(e, 0, c->area_mr->rkey, m->len, area_addr(c, AREA / 2));
	enc_no_chunks(e);
	m->len = 0;
}

/*
 * A READ with chunks for its results: Write chunks, a Reply chunk, both, or none. What is
 * too long then is exposed, where that is agreed on.
 */
static void results(struct conn *c, struct enc *e, struct enc *m, uint32_t xid)
{
	const unsigned int kinds = random_below(4), size = kinds || !random_below(8) ? some_size() :
		4096 + random_below(4096);
	unsigned int n = 1 + random_below(3), i;

	enc_call_hdr(e, xid, RDMA_MSG);
	enc_u32(e, 0);
	if (kinds & 1) {
		enc_u32(e, 1);
		enc_u32(e, n);
		for (i = 0; i < n; i++)
			enc_seg(e, c->area_mr->rkey, size / n + 1, area_addr(c, i * (size / n + 1)));
	}
	enc_u32(e, 0);
	enc_u32(e, !!(kinds & 2));
	if (kinds & 2) {
		enc_u32(e, n);
		for (i = 0; i < n; i++)
			enc_seg(e, c->area_mr->rkey, 4096, area_addr(c, AREA / 4 + i * 4096));
	}
	enc_compound(m, xid, 2);
	enc_lookup(m, "probe");
	enc_read(m, 0, size);
}

/* A Reply that the server has exposed on this connection, and a handle of it, if any. */
static uint32_t exposed_xid, exposed_handle;

static void note(const struct reply *r)
{
	if (r->len < 28 + 24 || get_word(r->p, HDR_PROC) != RDMA_NOMSG || get_word(r->p, 4) != 1)
		return;
	exposed_xid = get_word(r->p, HDR_XID);
	exposed_handle = get_word(r->p, 6);
	pulled++;
}

/* The message that says that a Reply has been pulled: that one, or whichever. */
static void some_done(struct enc *e, uint32_t xid)
{
	const uint32_t recent = xid - 1 - random_below(2 * TOGETHER);
	const bool right = random_below(2);

	enc_call_hdr(e, right && exposed_handle ? exposed_xid : recent, RDMA_DONE);
}

/* A valid message, mostly a Call; returns how long its header is. */
static unsigned int some_message(struct conn *c, struct enc *e)
{
	const uint32_t xid = new_xid();
	struct enc m = { .len = 0 };
	unsigned int header;

	e->len = 0;
	switch (random_below(6)) {
	case 0:
		enc_call_hdr(e, xid, RDMA_MSG);
		enc_no_chunks(e);
		enc_nfs4_call(&m, xid, 0);
		break;
	case 1:
		read_list(c, e, &m, xid);
		break;
	case 2:
		position_zero(c, e, &m, xid);
		break;
	case 3:
		some_done(e, xid);
		break;
	default:
		results(c, e, &m, xid);
	}
	header = e->len;
	enc_bytes(e, m.buf, m.len);
	return header;
}

/* The next Reply, for ten seconds at most, and not from a server that has left. */
static bool next_reply(struct conn *c, struct reply *r)
{
	unsigned int tenths;

	for (tenths = 0; tenths < 100; tenths++) {
		if (!get_reply(c, r, 100))
			return false;
		if (r->any)
			return true;
		if (disconnected(c))
			return fail("the server has left");
	}
	return fail("no answer to a Call that is right");
}

/* The server has seen all of what was sent, and answers a Call that is right. */
static bool caught_up(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	struct reply r;

	enc_null_call(&e, xid);
	if (!send_msg(c, &e))
		return false;
	do {
		if (!next_reply(c, &r))
			return false;
		note(&r);
	} while (r.len < 28 || get_word(r.p, HDR_XID) != xid || get_word(r.p, HDR_PROC) != RDMA_MSG);
	return true;
}

/* RDMA_DONE may invalidate a handle, which is seldom one of the Reply that it is about. */
static bool post_one(struct conn *c, const struct enc *e, bool invalidating)
{
	return invalidating && exposed_handle ? post_invalidating(c, e, exposed_handle) :
		post_msg(c, e);
}

/*
 * How often something is drawn does not depend on the server: on when a connection has
 * ended, which one it is, or what was exposed on it.
 */
static bool at_server(void)
{
	struct conn *c = NULL;
	unsigned int done, i, header, n;
	struct enc e;
	bool ok, invalidating;

	for (done = 0; done < BATCH; done += TOGETHER) {
		const struct params *params = random_below(2) ? &params_default : &params_pulled;

		if (!c) {
			c = conn_open(params);
			exposed_handle = 0;
		}
		if (!c)
			return fail("no new connection: %s", probe.reason);
		ok = true;
		for (i = n = 0; i < TOGETHER; i++) {
			header = some_message(c, &e);
			invalidating = !random_below(256);
			if (random_below(8))
				mutate(c, &e, header);
			if (!e.len || e.len > peer_recv_size(c))
				continue;
			ok = ok && post_one(c, &e, invalidating);
			n++;
		}
		if (ok && all_sent(c, n) && caught_up(c))
			continue;
		if (ok && !disconnected(c) && strstr(probe.reason, "no answer")) {
			conn_close(c);
			return false;
		}
		conn_close(c);
		c = NULL;
		lost++;
	}
	conn_close(c);
	messages += BATCH;
	c = conn_open(&params_default);
	ok = c && alive(c) && old_read_item(c, 0, 4096, 1, false, 0);
	conn_close(c);
	return ok && memory_released(SERVER_GAUGE);
}

/* Load for the client until the batch is over. What becomes of it does not matter. */
static volatile bool *over;

static int few_octets(void)
{
	return write_and_read(MOUNTPOINT "/fuzzed", 3, 1000, 9192);
}

static int many_octets(void)
{
	read_file();
	write_file();
	return list_directory();
}

/* A listing that the client has not kept, of a directory with nothing in it. */
static int list_anew(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/%s/empty/changed", probe.dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	unlink(path);
	return list_empty();
}

static int load(void)
{
	int (*const works[])(void) = { stat_file, few_octets, list_anew, many_octets };
	unsigned int i;

	for (i = 0; i < COUNT(works); i++)
		if (!fork()) {
			while (!*over)
				works[i]();
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}

/*
 * The Reply to a Call that gives no place for a long one, where it may be pulled. It stays
 * while others are exposed.
 */
static bool expose(struct conn *c, struct call *call, struct enc *e)
{
	static unsigned int turn;
	const unsigned int at = AREA / 2 + turn++ % (AREA / 2 / ROOM) * ROOM;
	unsigned int len;
	const uint8_t *reply = reference_reply(c, call, &len);

	if (!reply)
		return false;
	if (len > ROOM)
		return fail("a Reply of %u octets", len);
	pulled++;
	memcpy(c->area + at, reply, len);
	e->len = 0;
	enc_hdr(e, call->xid, 1, serving.grant, RDMA_NOMSG);
	enc_rseg(e, 0, c->area_mr->rkey, len / 2, area_addr(c, at));
	enc_rseg(e, 0, c->area_mr->rkey, len - len / 2, area_addr(c, at + len / 2));
	enc_no_chunks(e);
	return true;
}

static bool is_to_pull(const struct conn *c, const struct call *call)
{
	return c->params == &params_pulled && !call->writes && !call->reply.n &&
	       call->program == NFS_PROGRAM && (call->procedure == NFS3_READDIR ||
					call->procedure == NFS3_READDIRPLUS);
}

static unsigned int in_batch, batch;

/*
 * A client that is sent what it has not asked for may have no Receive for the next message. That
 * ends the connection at once, as often as it is accepted: who keeps to the credits has no need
 * to try again, and so the client says.
 */
static bool overrun(void)
{
	if (!strstr(probe.reason, ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR)))
		return false;
	printf("# a connection is lost: more than there are Receives\n");
	close_peer();
	return true;
}

/* Mutated Replies, and then the right one. */
static bool fuzzed(struct conn *c, struct call *call)
{
	const bool to_pull = is_to_pull(c, call);
	unsigned int n = random_below(AT_ONCE), posted = 1, all;
	struct enc right, wrong;

	serving.call_seen = true;
	if (to_pull ? !expose(c, call, &right) : !make_reply(c, call, &right))
		return false;
	while (n--) {
		wrong = right;
		all = read_result_len(&wrong, call);
		if (all && !random_below(4))
			set_read_result(&wrong, call, random_below(all + 1), random_below(all + 1));
		mutate(c, &wrong, to_pull ? right.len : reply_hdr_len(call));
		if (!wrong.len || wrong.len > peer_recv_size(c))
			continue;
		if (call->reads.n && !random_below(64) ?
		    !post_invalidating(c, &wrong, call->reads.seg[0].handle) :
		    !post_msg(c, &wrong))
			return false;
		posted++;
	}
	in_batch += posted;
	*over = in_batch >= BATCH;
	return (post_msg(c, &right) && all_sent(c, posted)) || overrun();
}

/* Replies are pulled on every other connection, and in every other batch on the first. */
static const struct params *some_terms(unsigned int number)
{
	return (number + batch) % 2 ? &params_pulled : &params_default;
}

/* RDMA_DONE, which is right as often as not: what was mutated may be pulled as well. */
static bool takes_done(struct conn *c, struct call *call, bool *ok)
{
	(void)c;
	*ok = true;
	return call->proc == RDMA_DONE;
}

static const struct test load_test = {
	"", "load", .answer = fuzzed, .work = load, .min_connections = 1, .params_of = some_terms,
	.mount_options = "rsize=65536,wsize=65536,actimeo=0",
};

static const struct group here = { .name = "fuzz_client", .answer_other = takes_done };
static const struct test sane_test = { "", "sane", .work = write_file };

static bool at_client(void)
{
	bool ok;

	if (!over)
		over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*over = false;
	in_batch = 0;
	serving.ignore_errors = true;
	ok = run_client_case(&here, &load_test);
	serving.ignore_errors = false;
	messages += in_batch;
	lost += serving.connections - 1;
	return ok && run_client_case(&here, &sane_test);
}

int fuzz(bool server_end, uint64_t seed, unsigned int batches, unsigned int from)
{
	unsigned int i, failures = 0;
	const time_t start = time(NULL);

	printf("KTAP version 1\n1..%u\n", batches);
	for (i = from; i <= batches; i++) {
		bool ok;

		printf("# case %u - seed %llu\n", i, (unsigned long long)seed);
		fflush(stdout);
		strcpy(probe.reason, "");
		seed_random(seed, i);
		batch = i;
		probe.next_xid = random_below(0xffffffff);
		ok = server_end ? at_server() : at_client();
		if (!ok)
			printf("# %s\n", probe.reason);
		printf("%sok %u - seed %llu\n", ok ? "" : "not ", i, (unsigned long long)seed);
		failures += !ok;
	}
	printf("# %u messages in %u s, %u connections lost, %u Replies to pull, %u batches failed\n",
	       messages, (unsigned int)(time(NULL) - start), lost, pulled, failures);
	return !!failures;
}
