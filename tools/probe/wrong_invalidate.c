// SPDX-License-Identifier: GPL-2.0
/*
 * A server that lies about invalidation. Lies are told in every twentieth Reply to a
 * Call with a Read list; the others invalidate a handle of their Call. Connections may
 * end; data stays right, and memory comes back.
 */

#include <sys/wait.h>
#include "compat.h"

#define LIE_EVERY	20
#define CALLS_EACH	10
#define LONGEST_PRIVATE	196
#define ID		0xf6, 0xab, 0x0e, 0x18

enum { CONNECT_COUNT = 3, READ_CHUNKS = 11, LOCAL_INV = 25 };

/* Replies are invalidating ones unless this end is unwilling. */
static const struct params willing = {
	.private_data = { ID, 1, 1, 63, 3 }, .private_len = 8, .responder = 4, .initiator = 4, .recv_size = 4096,
};

static const struct params unwilling = {
	.private_data = { ID, 1, 0, 63, 3 }, .private_len = 8, .responder = 4, .initiator = 4, .recv_size = 4096,
};

static bool send_reply(struct conn *c, struct call *call, const uint32_t *handle)
{
	struct enc e;

	if (!make_reply(c, call, &e))
		return false;
	serving.call_seen |= handle != NULL;
	return handle ? send_invalidating(c, &e, *handle) : send_msg(c, &e);
}

static bool now(void)
{
	static unsigned long turn;

	return ++turn % LIE_EVERY == 0;
}

static bool first_handle(struct conn *c, struct call *call)
{
	const struct chunk *chunk = call->reads.n ? &call->reads : &call->write;

	return send_reply(c, call, chunk->n ? &chunk->seg[0].handle : NULL);
}

static bool last_handle(struct conn *c, struct call *call)
{
	const unsigned int n = call->reads.n;
	/* On siw one region holds a WRITE, and its handle is the first as well. */
	const bool chosen = n > (probe.settle_ms ? 0 : 1);

	return send_reply(c, call, chosen ? &call->reads.seg[n - 1].handle : NULL);
}

/* A handle that was never given out. */
static bool never_given(struct conn *c, struct call *call)
{
	const uint32_t handle = call->reads.seg[0].handle ^ 0x5a5a00;

	return call->reads.n && now() ? send_reply(c, call, &handle) : first_handle(c, call);
}

/* That of another Call that still waits. */
static bool of_another(struct conn *c, struct call *call)
{
	static bool due;
	struct call *other;
	unsigned int i;

	due |= call->reads.n && now();
	for (i = 0; due && (other = queued_call(c, i)); i++)
		if (other->reads.n) {
			due = false;
			return send_reply(c, call, &other->reads.seg[0].handle);
		}
	return first_handle(c, call);
}

/* That of a Call that was answered before. */
static bool stale(struct conn *c, struct call *call)
{
	static uint32_t before[2];
	uint32_t handle;

	if (!call->reads.n)
		return answer_correctly(c, call);
	handle = before[1] && now() ? before[1] : call->reads.seg[0].handle;
	before[1] = before[0];
	before[0] = call->reads.seg[0].handle;
	return send_reply(c, call, &handle);
}

/* Each connection ends after some Calls. */
static bool and_leave(struct conn *c, struct call *call)
{
	static int served;

	serving.call_seen = true;
	if (!answer_correctly(c, call))
		return false;
	if (++served % CALLS_EACH == 0)
		close_peer();
	return true;
}

/*
 * Private data that is no message, or a broken one, of each length in turn. One that can be
 * read tells of 4096 octets; who is told nothing sends no more than 1024. While the params of the
 * next connection are made, those of this one still count.
 */
static const struct params *odd_terms(unsigned int number)
{
	static const uint8_t id[8] = { ID, 1, 1, 63, 3 };
	static struct params both[2];
	struct params *params = &both[number % 2];
	const unsigned int len = number % (LONGEST_PRIVATE + 1);
	unsigned int i;

	*params = willing;
	params->private_len = len;
	params->recv_size = number % 3 == 1 && len >= 8 ? 4096 : 1024;
	/* What the client may take from it, if anything, is what the others say. */
	for (i = 0; i < len; i++)
		params->private_data[i] = number % 2 ? 0xf6 : random();
	/* The message ends where the data does: all of it is there, or only its start. */
	for (i = 0; i < 8 && number % 3; i++)
		if (len >= 8)
			params->private_data[len - 8 + i] = id[i];
		else if (i < len)
			params->private_data[i] = id[i];
	if (number % 3 == 2 && len >= 8)
		params->private_data[len - 4] = 2;	/* another version */
	return params;
}

/* Writers at a time, each to a file of its own. */
#define WRITERS	4

static int writers(unsigned int turns, unsigned int most)
{
	int status, result = 0;
	char path[64];
	int i;

	for (i = 0; i < WRITERS; i++)
		if (!fork()) {
			snprintf(path, sizeof(path), MOUNTPOINT "/lies-%d", i);
			_exit(write_and_read(path, turns, most / 2 + 4096, most));
		}
	while (wait(&status) > 0)
		result = WIFEXITED(status) && !WEXITSTATUS(status) ? result : EIO;
	return result;
}

#define SHORT_TURNS	40

static int write_short(void)
{
	return writers(SHORT_TURNS, 32768);
}

static int write_long(void)
{
	return writers(30, 262144);
}

/* Each WRITE has a Read chunk, and the statistics of the mount know of them. */
static int write_counted(void)
{
	const int status = write_short();

	return status || xprt_stat(READ_CHUNKS) >= WRITERS * SHORT_TURNS ? status : ENODATA;
}

/* Was the client's word taken that its handles are invalid? */
static int write_invalidated(void)
{
	const int status = write_counted();

	/* On iWARP it proves nothing: settling is for siw. */
	return status || probe.settle_ms ? status : xprt_stat(LOCAL_INV) <= 10 ? 0 : ENOTUNIQ;
}

static int write_uninvalidated(void)
{
	const int status = write_counted();

	return status ? status : xprt_stat(LOCAL_INV) >= xprt_stat(READ_CHUNKS) ? 0 : ENOTUNIQ;
}

/* Every other WRITE is one that fits in 4096 octets, and not in 1024. */
static int write_often(void)
{
	int i, status = 0;

	for (i = 0; i < 40 && !status; i++)
		status = write_and_read(MOUNTPOINT "/lies-0", 40, 3000, 8192);
	return status;
}

#define SHORT	"wsize=32768,rsize=32768"

static const struct test tests[] = {
	{ "RI3-1-2 RI3-3-1 R8797-3.2-2", "a handle of each Call",
	  .answer = first_handle, .work = write_invalidated, .params = &willing, .mount_options = SHORT },
	{ "RI3-3-2", "nothing is invalidated, although both ends are willing",
	  .work = write_uninvalidated, .params = &willing, .mount_options = SHORT },
	/* Nothing says whether a client is to stand it. */
	{ "R8797-4.1-1", "handles are invalidated although this end has not offered it",
	  .answer = first_handle, .work = write_counted, .params = &unwilling, .mount_options = SHORT,
	  .min_connections = 1 },
	{ "RI3-2.3-1 RI3-3.2-2 R8797-3.2-2", "the last handle of the Call",
	  .answer = last_handle, .work = write_long, .params = &willing,
	  .mount_options = "wsize=262144,rsize=32768" },
	{ "RI3-3.2-3", "a handle that was never given out",
	  .answer = never_given, .work = write_short, .params = &willing, .mount_options = SHORT,
	  .min_connections = 2 },
	{ "RI3-3.2-3", "a handle of another Call that waits",
	  .answer = of_another, .work = write_short, .params = &willing, .mount_options = SHORT,
	  .min_connections = 2 },
	{ "RI3-3.2-3", "a handle of a Call that was answered",
	  .answer = stale, .work = write_short, .params = &willing, .mount_options = SHORT,
	  .min_connections = 2 },
	{ "R8797-5.2-1 R8797-5.2-2 R8797-5.2-3 CM0-4-1", "private data of every length",
	  .answer = and_leave, .work = write_often, .params_of = odd_terms,
	  .mount_options = "wsize=32768,rsize=32768", .min_connections = 200 },
};

const struct group group_wrong_invalidate = {
	.name = "wrong_invalidate", .about = "a server that lies about invalidation and in its private data",
	.tests = tests, .n = COUNT(tests),
};
