// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses to the memory of a client's task that was killed while it waited for its Reply. The
 * server (this process) and the client's work (a child process) synchronize through files.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "answers.h"
#include "delay.h"
#include "exposed.h"
#include "group.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

#define HELD	"/tmp/probe-held"	/* the server does not reply to the Call */
#define KILLED	"/tmp/probe-killed"	/* the task is dead */

/* How long the end of a connection is delayed. The task is killed earlier. */
#define DELAY_MS	(SOON_MS * probe.time_factor + 4000)

#define WRITER_SIZE	65536

static bool wait_for_file(const char *name)
{
	int i;

	for (i = 0; i < PATIENCE_MS / 100 * probe.time_factor && access(name, F_OK); i++)
		usleep(100000);
	return !access(name, F_OK);
}

static void create_file(const char *name)
{
	close(open(name, O_CREAT | O_WRONLY, 0600));
}

/* Lets the child process kill the task. */
static bool wait_for_kill(void)
{
	create_file(HELD);
	return wait_for_file(KILLED) ? true : fail("the task was not killed");
}

/*
 * A task that lists a directory: a READ would go on without its task. GETACL has a Reply chunk, too.
 */
bool write_for_killed(struct conn *c, struct call *call)
{
	if (serving.call_seen || !is_listing(call) || !call->reply.n)
		return answer_correctly(c, call);
	serving.call_seen = true;
	if (!wait_for_kill())
		return false;
	return denied_soon(c, IBV_WR_RDMA_WRITE, call->reply.seg, false);
}

static int kill_lister(void)
{
	pid_t reader;
	int status;

	unlink(HELD);
	unlink(KILLED);
	reader = fork();
	if (!reader)
		_exit(list_directory());
	if (!wait_for_file(HELD))
		return ETIMEDOUT;
	kill(reader, SIGKILL);
	if (waitpid(reader, &status, 0) != reader || !WIFSIGNALED(status))
		return ESRCH;
	create_file(KILLED);
	return 0;
}

int list_and_be_killed(void)
{
	const int status = kill_lister();

	return status ? status : list_directory();
}

/* The next queued Call with a Read chunk. */
static struct call *next_write_call(struct conn *c)
{
	struct call *call;
	unsigned int i;
	int ms;

	for (ms = 0; ms < PATIENCE_MS * probe.time_factor && !disconnected(c); ms++, usleep(1000))
		for (i = 0; (call = queued_call(c, i)); i++)
			if (call->reads.n)
				return call;
	return NULL;
}

/*
 * The Reply invalidates a handle of another Call, which ends the connection. The task that waits
 * for that Reply is killed while the connection ends.
 */
bool invalidate_for_killed(struct conn *c, struct call *call)
{
	struct call *other;
	struct enc e;

	if (serving.call_seen || !is_listing(call) || !call->reply.n)
		return answer_correctly(c, call);
	other = next_write_call(c);
	if (!other)
		return answer_correctly(c, call);
	serving.call_seen = true;
	if (!make_reply(c, call, &e) || !send_invalidating(c, &e, other->reads.seg[0].handle))
		return fail("invalidating another Call's handle failed");
	sleep_ms(SOON_MS);
	if (!wait_for_kill())
		return false;
	/* Over iWARP only the end of the connection shows a denial, and it may have ended already. */
	if (is_iwarp(c))
		return wait_disconnected(c, PATIENCE_MS) ? true : fail("still connected");
	return denied_soon(c, IBV_WR_RDMA_WRITE, call->reply.seg, false);
}

/* WRITEs, one after another, until the task has been killed. */
static int write_until_killed(int fd)
{
	uint8_t *p = aligned_alloc(4096, WRITER_SIZE);

	memset(p, 0x77, WRITER_SIZE);
	while (access(KILLED, F_OK))
		if (pwrite(fd, p, WRITER_SIZE, 0) != WRITER_SIZE)
			return EIO;
	return 0;
}

int list_beside_writer(void)
{
	const int fd = open(MOUNTPOINT "/written", O_DIRECT | O_RDWR | O_CREAT, 0666);
	int status, result;
	pid_t writer;

	if (fd < 0)
		return errno;
	unlink(HELD);
	unlink(KILLED);
	if (!delay_start("function=xprt_autoclose entry=1 delay_ms=%d", DELAY_MS))
		return ENOSYS;
	writer = fork();
	if (!writer)
		_exit(write_until_killed(fd));
	result = list_and_be_killed();
	create_file(KILLED);
	if (waitpid(writer, &status, 0) != writer)
		result = ECHILD;
	close(fd);
	if (!delay_end())
		result = EBUSY;
	return result ? result : WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/*
 * Longer than a client waits for the Reply to any Call, and shorter than it keeps an idle connection.
 * Both are times of the kernel, which do not follow TIME_FACTOR.
 */
#define OVERDUE_S	66

/* The task is killed, and its Reply comes much later. */
static bool reply_late(struct conn *c, struct call *call)
{
	struct enc e = { .len = 0 };

	if (serving.call_seen || !is_listing(call) || !call->reply.n)
		return answer_correctly(c, call);
	serving.call_seen = true;
	if (!wait_for_kill())
		return false;
	sleep(OVERDUE_S);
	if (disconnected(c))
		return fail("the client has disconnected");
	/* The Reply chunk cannot be written any more. */
	enc_hdr(&e, call->xid, RPCRDMA_VERSION, serving.grant, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_reply(&e, call->xid, GARBAGE_ARGS);
	return send_msg(c, &e);
}

/* No Call waits for its Reply meanwhile. */
static int list_after_late_reply(void)
{
	const int status = kill_lister();

	if (status)
		return status;
	sleep(OVERDUE_S);
	sleep_ms(1000);
	return list_directory();
}

static const struct test tests[] = {
	{ "R8166-3.3.1-3", "the Reply for a killed task comes after more than a minute",
	  .answer = reply_late, .work = list_after_late_reply },
};

const struct group group_late_reply = {
	.name = "late_reply", .about = "a server that replies after the task was killed",
	.tests = tests, .n = COUNT(tests),
};
