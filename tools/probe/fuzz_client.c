// SPDX-License-Identifier: GPL-2.0
/*
 * Mutated Replies to the kernel's client. The client works in child processes until the batch is
 * over; whether its work succeeds does not matter.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "answers.h"
#include "fuzz.h"
#include "mutate.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

#define MOST_PER_CALL	24		/* mutated Replies to one Call */
#define EXPOSED_ROOM	(128 << 10)	/* bytes for an exposed Reply */

static volatile bool *over;		/* shared with the child processes */
static unsigned int batch, in_batch;

static int write_little(void)
{
	return write_and_read(MOUNTPOINT "/fuzzed", 3, 1000, 9192);
}

static int transfer_much(void)
{
	read_file();
	write_file();
	return list_directory();
}

/* Changes an empty directory, so that the client has to list it again. */
static int list_changed(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/%s/empty/changed", probe.dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	unlink(path);
	return list_empty();
}

static int load(void)
{
	int (*const works[])(void) = { stat_file, write_little, list_changed, transfer_much };
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

/* Exposes the Reply. It stays in place while later Replies are exposed. */
static bool enc_exposed_reply(struct conn *c, struct call *call, struct enc *e)
{
	static unsigned int n;
	const unsigned int at = AREA / 2 + n++ % (AREA / 2 / EXPOSED_ROOM) * EXPOSED_ROOM;
	unsigned int len;
	const uint8_t *reply = reference_reply(c, call, &len);

	if (!reply)
		return false;
	if (len > EXPOSED_ROOM)
		return fail("a Reply of %u bytes", len);
	fuzz_stats.exposed_replies++;
	memcpy(c->area + at, reply, len);
	e->len = 0;
	enc_hdr(e, call->xid, RPCRDMA_VERSION, serving.grant, RDMA_NOMSG);
	enc_rseg(e, 0, c->area_mr->rkey, len / 2, area_addr(c, at));
	enc_rseg(e, 0, c->area_mr->rkey, len - len / 2, area_addr(c, at + len / 2));
	enc_no_chunks(e);
	return true;
}

/* A listing without a Reply chunk. */
static bool may_be_exposed(const struct conn *c, const struct call *call)
{
	return c->params == &params_pulled && !call->writes && !call->reply.n &&
	       is_listing(call);
}

/*
 * A client that is sent unsolicited messages may have no Receive for the next one. The connection
 * then ends at once, because the client sets the RNR retry count to 0: a server that respects
 * the credits needs no retries.
 */
static bool lost_by_overrun(void)
{
	if (!strstr(probe.reason, ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR)))
		return false;
	printf("# a connection is lost: more messages than Receives\n");
	close_peer();
	return true;
}

/* Mutates the right Reply, and posts it. */
static bool post_mutated(struct conn *c, struct call *call, const struct enc *right,
			 unsigned int hdr_len, unsigned int *posted)
{
	struct enc wrong = *right;
	const unsigned int all = read_result_len(&wrong, call);

	/* A READ that returns less than was written. */
	if (all && !random_below(4)) {
		const unsigned int count = random_below(all + 1);

		set_read_result(&wrong, call, random_below(all + 1), count);
	}
	mutate(c, &wrong, hdr_len);
	if (!wrong.len || wrong.len > peer_recv_size(c))
		return true;
	++*posted;
	return call->reads.n && !random_below(64) ?
		post_invalidating(c, &wrong, call->reads.seg[0].handle) : post_msg(c, &wrong);
}

/* Mutated Replies, and then the right one. */
static bool answer_fuzzed(struct conn *c, struct call *call)
{
	const bool expose = may_be_exposed(c, call);
	unsigned int n = random_below(MOST_PER_CALL), posted = 0;
	struct enc right;
	bool ok;

	serving.call_seen = true;
	if (expose ? !enc_exposed_reply(c, call, &right) : !make_reply(c, call, &right))
		return false;
	while (n--)
		if (!post_mutated(c, call, &right, expose ? right.len : reply_hdr_len(call),
				  &posted))
			return false;
	in_batch += posted + 1;
	*over = in_batch >= BATCH;
	ok = post_msg(c, &right);
	for (n = 0; ok && n <= posted; n++)
		ok = wait_sent(c);
	return ok || lost_by_overrun();
}

/* Pulled Replies are agreed on every other connection, and on the first of every other batch. */
static const struct params *alternate_params(unsigned int connection)
{
	return (connection + batch) % 2 ? &params_pulled : &params_default;
}

/* RDMA_DONEs are not checked: a mutated announcement may be pulled as well. */
static bool ignore_done(struct conn *c, struct call *call, bool *ok)
{
	(void)c;
	*ok = true;
	return call->proc == RDMA_DONE;
}

static const struct group fuzz_group = { .name = "fuzz_client", .answer_other = ignore_done };

static const struct test load_test = {
	"", "load", .answer = answer_fuzzed, .work = load, .min_connections = 1,
	.params_of = alternate_params, .mount_options = "rsize=65536,wsize=65536,actimeo=0",
};

static const struct test sane_test = { "", "sane", .work = write_file };

bool fuzz_client_batch(unsigned int number)
{
	bool ok;

	if (!over)
		over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*over = false;
	batch = number;
	in_batch = 0;
	serving.ignore_errors = true;
	ok = run_client_case(&fuzz_group, &load_test);
	serving.ignore_errors = false;
	fuzz_stats.messages += in_batch;
	fuzz_stats.lost_connections += serving.connections - 1;
	return ok && run_client_case(&fuzz_group, &sane_test);
}
