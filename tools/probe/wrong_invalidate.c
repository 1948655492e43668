// SPDX-License-Identifier: GPL-2.0
/*
 * A server that invalidates the right or a wrong handle of the kernel's client, or sends odd
 * private data. Every twentieth Reply to a Call with a Read list invalidates a wrong handle; the
 * others invalidate a handle of their Call. Connections may end. The data has to be right, and all
 * memory has to be freed.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "answers.h"
#include "group.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

#define WRONG_EVERY		20
#define CALLS_PER_CONNECTION	10
#define MAX_PRIVATE_LEN		196	/* that a server can send over RoCE */

/* Columns of xprt_stat(). */
enum { READ_CHUNKS = 11, LOCAL_INV = 25 };

/* Whether this end announces Remote Invalidation. */
static const struct params params_announced = {
	.private_data = { PRIVATE_MSG(REMOTE_INVALIDATE, 63, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 4, .initiator = 4, .recv_size = 4096,
};

static const struct params params_unannounced = {
	.private_data = { PRIVATE_MSG(0, 63, 3) }, .private_len = PRIVATE_MSG_LEN,
	.responder = 4, .initiator = 4, .recv_size = 4096,
};

/* Sends the right Reply, and invalidates this handle if it is not NULL. */
static bool send_reply(struct conn *c, struct call *call, const uint32_t *handle)
{
	struct enc e;

	if (!make_reply(c, call, &e))
		return false;
	serving.call_seen |= handle != NULL;
	return handle ? send_invalidating(c, &e, *handle) : send_msg(c, &e);
}

static bool wrong_one_due(void)
{
	static unsigned long n;

	return ++n % WRONG_EVERY == 0;
}

static bool first_handle(struct conn *c, struct call *call)
{
	const struct chunk *chunk = call->reads.n ? &call->reads : &call->write;

	return send_reply(c, call, chunk->n ? &chunk->seg[0].handle : NULL);
}

/* On siw one MR holds all of a WRITE, so the first handle is the last. */
static bool last_handle(struct conn *c, struct call *call)
{
	const unsigned int n = call->reads.n;
	const bool has_last = n > (is_iwarp(c) ? 0 : 1);

	return send_reply(c, call, has_last ? &call->reads.seg[n - 1].handle : NULL);
}

static bool unknown_handle(struct conn *c, struct call *call)
{
	const uint32_t handle = call->reads.seg[0].handle ^ 0x5a5a00;

	return call->reads.n && wrong_one_due() ? send_reply(c, call, &handle) :
		first_handle(c, call);
}

/* The handle of another Call that is outstanding. */
static bool other_call(struct conn *c, struct call *call)
{
	static bool due;
	struct call *other;
	unsigned int i;

	due |= call->reads.n && wrong_one_due();
	for (i = 0; due && (other = queued_call(c, i)); i++)
		if (other->reads.n) {
			due = false;
			return send_reply(c, call, &other->reads.seg[0].handle);
		}
	return first_handle(c, call);
}

/* The handle of a Call that was answered before. */
static bool stale_handle(struct conn *c, struct call *call)
{
	static uint32_t before[2];
	uint32_t handle;

	if (!call->reads.n)
		return answer_correctly(c, call);
	handle = before[1] && wrong_one_due() ? before[1] : call->reads.seg[0].handle;
	before[1] = before[0];
	before[0] = call->reads.seg[0].handle;
	return send_reply(c, call, &handle);
}

#define SOON_MS	30000	/* less than the time after which an RPC is sent again */

/*
 * A Reply with a Reply chunk that was not offered, which invalidates the first handle. The client
 * cannot use it, and the right Reply could not be placed in the memory that is gone.
 */
static bool malformed(struct conn *c, struct call *call)
{
	static unsigned int last;
	struct enc e = { .len = 0 };

	if (!call->reads.n || !first_in_case(&last))
		return first_handle(c, call);
	enc_hdr(&e, call->xid, RPCRDMA_VERSION, serving.grant, RDMA_MSG);
	enc_list_end(&e);
	enc_list_end(&e);
	enc_chunk_head(&e, 1);
	enc_seg(&e, call->reads.seg[0].handle, 64, call->reads.seg[0].offset);
	enc_rpc_reply(&e, call->xid, ACCEPT_SUCCESS);
	serving.call_seen = true;
	if (!send_invalidating(c, &e, call->reads.seg[0].handle))
		return false;
	return wait_disconnected(c, SOON_MS) || fail("the client waits for another Reply");
}

/*
 * A Reply to no outstanding Call, which invalidates the first handle of this Call. The client would
 * rely on that handle until the Reply.
 */
static bool unmatched(struct conn *c, struct call *call)
{
	const uint32_t xid = call->xid ^ 0x80000000;
	static unsigned int last;
	struct enc e = { .len = 0 };

	if (!call->reads.n || !first_in_case(&last))
		return first_handle(c, call);
	enc_hdr(&e, xid, RPCRDMA_VERSION, serving.grant, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_reply(&e, xid, ACCEPT_SUCCESS);
	serving.call_seen = true;
	if (!send_invalidating(c, &e, call->reads.seg[0].handle))
		return false;
	return wait_disconnected(c, SOON_MS) || fail("the client keeps the connection");
}

static bool answer_and_disconnect(struct conn *c, struct call *call)
{
	static int served;

	serving.call_seen = true;
	if (!answer_correctly(c, call))
		return false;
	if (++served % CALLS_PER_CONNECTION == 0)
		close_peer();
	return true;
}

/*
 * Private data of every length, which holds at its end a valid message, one of another version,
 * or none. With a valid message the client may send 4096 bytes, otherwise 1024. The caller still
 * uses the previous connection's parameters, so there are two of these.
 */
static const struct params *odd_params(unsigned int number)
{
	enum { NO_MSG, VALID_MSG, OTHER_VERSION, KINDS };
	static const uint8_t msg[PRIVATE_MSG_LEN] = { PRIVATE_MSG(REMOTE_INVALIDATE, 63, 3) };
	static struct params both[2];
	struct params *params = &both[number % 2];
	const unsigned int len = number % (MAX_PRIVATE_LEN + 1), kind = number % KINDS;
	unsigned int i;

	*params = params_announced;
	params->private_len = len;
	params->recv_size = kind == VALID_MSG && len >= PRIVATE_MSG_LEN ? 4096 : 1024;
	for (i = 0; i < len; i++)
		params->private_data[i] = number % 2 ? msg[0] : random();
	if (kind == NO_MSG)
		return params;
	for (i = 0; i < PRIVATE_MSG_LEN; i++)
		if (len >= PRIVATE_MSG_LEN)
			params->private_data[len - PRIVATE_MSG_LEN + i] = msg[i];
		else if (i < len)
			params->private_data[i] = msg[i];	/* truncated */
	if (kind == OTHER_VERSION && len >= PRIVATE_MSG_LEN)
		params->private_data[len - PRIVATE_MSG_LEN + 4] = 2;
	return params;
}

#define WRITERS		4	/* at a time, each to its own file */
#define SHORT_ROUNDS	40
#define LONG_ROUNDS	30

static int run_writers(unsigned int rounds, unsigned int most)
{
	int status, result = 0;
	char path[64];
	int i;

	for (i = 0; i < WRITERS; i++)
		if (!fork()) {
			snprintf(path, sizeof(path), MOUNTPOINT "/invalidate-%d", i);
			_exit(write_and_read(path, rounds, most / 2 + 4096, most));
		}
	while (wait(&status) > 0)
		result = WIFEXITED(status) && !WEXITSTATUS(status) ? result : EIO;
	return result;
}

static int write_short(void)
{
	return run_writers(SHORT_ROUNDS, 32768);
}

static int write_long(void)
{
	return run_writers(LONG_ROUNDS, 262144);
}

/* The client's statistics count a Read chunk for each WRITE. */
static int write_counted(void)
{
	const int status = write_short();

	return status || xprt_stat(READ_CHUNKS) >= WRITERS * SHORT_ROUNDS ? status : ENODATA;
}

/*
 * The client posts almost no LOCAL_INVs, because the server invalidates its handles. Over iWARP,
 * where SETTLE_MS is set, it does not rely on that.
 */
static int write_invalidated(void)
{
	const int status = write_counted();

	return status || probe.settle_ms ? status : xprt_stat(LOCAL_INV) <= 10 ? 0 : ENOTUNIQ;
}

static int write_uninvalidated(void)
{
	const int status = write_counted();

	return status ? status : xprt_stat(LOCAL_INV) >= xprt_stat(READ_CHUNKS) ? 0 : ENOTUNIQ;
}

/* Every other WRITE fits in 4096 bytes, and not in 1024. */
static int write_often(void)
{
	int i, status = 0;

	for (i = 0; i < 40 && !status; i++)
		status = write_and_read(MOUNTPOINT "/invalidate-0", 40, 3000, 8192);
	return status;
}

#define SHORT_IO	"wsize=32768,rsize=32768"
/* siw may lose the first Call of a connection, see Documentation/upstream/drivers.rst. */
#define SHORT_TIMEO	SHORT_IO ",timeo=100"

static const struct test tests[] = {
	{ "RI3-1-2 RI3-3-1 R8797-3.2-2", "the first handle of each Call",
	  .answer = first_handle, .work = write_invalidated, .params = &params_announced,
	  .mount_options = SHORT_IO },
	{ "RI3-3-2", "no handle, although both ends have announced Remote Invalidation",
	  .work = write_uninvalidated, .params = &params_announced, .mount_options = SHORT_IO },
	/* The client may close the connection: no requirement says what it has to do. */
	{ "R8797-4.1-1", "handles, although this end has not announced Remote Invalidation",
	  .answer = first_handle, .work = write_counted, .params = &params_unannounced,
	  .mount_options = SHORT_IO, .min_connections = 1 },
	{ "RI3-2.3-1 RI3-3.2-2 R8797-3.2-2", "the last handle of each Call",
	  .answer = last_handle, .work = write_long, .params = &params_announced,
	  .mount_options = "wsize=262144,rsize=32768" },
	{ "RI3-3.2-3", "an unknown handle",
	  .answer = unknown_handle, .work = write_short, .params = &params_announced,
	  .mount_options = SHORT_IO, .min_connections = 2 },
	{ "RI3-3.2-3", "a handle of another outstanding Call",
	  .answer = other_call, .work = write_short, .params = &params_announced,
	  .mount_options = SHORT_IO, .min_connections = 2 },
	{ "RI3-3.2-3", "a handle of an earlier Call",
	  .answer = stale_handle, .work = write_short, .params = &params_announced,
	  .mount_options = SHORT_IO, .min_connections = 2 },
	{ "-", "a handle of a Call whose Reply is malformed",
	  .answer = malformed, .work = write_short, .params = &params_announced,
	  .mount_options = SHORT_IO, .min_connections = 2 },
	{ "RI3-3.2-3", "a handle of an outstanding Call, by a Reply to no Call",
	  .answer = unmatched, .work = write_short, .params = &params_announced,
	  .mount_options = SHORT_IO, .min_connections = 2 },
	{ "R8797-5.2-1 R8797-5.2-2 R8797-5.2-3 CM0-4-1", "private data of every length",
	  .answer = answer_and_disconnect, .work = write_often, .params_of = odd_params,
	  .mount_options = SHORT_TIMEO, .min_connections = 200 },
};

const struct group group_wrong_invalidate = {
	.name = "wrong_invalidate",
	.about = "a server that invalidates wrong handles, and sends odd private data",
	.tests = tests, .n = COUNT(tests),
};
