// SPDX-License-Identifier: GPL-2.0
/*
 * The server's end of a case in which the kernel's client works: the client mounts, does the
 * case's work in a child process, and unmounts, while this process serves it.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "answers.h"
#include "counters.h"
#include "probe.h"
#include "serve.h"
#include "work.h"

#define WORK_SECONDS	300
#define ATTEMPTS	3
#define LATER_MS	20000	/* in which what a case is about arrives after its work */
#define DISCONNECT_MS	1000	/* in which the reason of a failure shows if it is a disconnect */

struct serving serving = { .grant = CREDITS };

static const struct test *current;
static const struct group *group;
static struct conn *peer;

/* True once in each case; @last is a static variable of the caller. */
bool first_in_case(unsigned int *last)
{
	if (*last == serving.case_number)
		return false;
	*last = serving.case_number;
	return true;
}

/* Closes the client's connection. The client reconnects and retransmits. */
void close_peer(void)
{
	conn_close(peer);
	peer = NULL;
	drop_queued_calls();
}

static const struct params *next_params(void)
{
	if (current->params_of)
		return current->params_of(serving.connections);
	if (current->params)
		return current->params;
	return group->params ? group->params : &params_default;
}

/* Accepts a connection, if the client asks for one. */
static void poll_connect(void)
{
	struct conn *next = conn_accept(next_params(), peer ? 0 : 1);

	if (!next)
		return;
	if (peer)
		printf("# the client connects again\n");
	close_peer();
	peer = next;
	serving.connections++;
}

/* Answers the next Call, if there is one. A failure that is due to a disconnect is none. */
static bool serve_one(bool (*answer)(struct conn *c, struct call *call))
{
	struct call call;
	bool ok;

	poll_connect();
	if (!peer)
		return true;
	switch (next_call(peer, &call, 1)) {
	case CALL_NONE:
		if (disconnected(peer))
			close_peer();
		return true;
	case CALL_CONN_LOST:
		printf("# a connection is lost\n");
		close_peer();
		return true;
	case CALL_INVALID:
		return false;
	case CALL_RECEIVED:
		break;
	}
	if (!group->answer_other || !group->answer_other(peer, &call, &ok))
		ok = answer(peer, &call);
	free_call(&call);
	if (ok || !peer)
		return ok;
	if (!wait_disconnected(peer, DISCONNECT_MS))
		return false;
	printf("# a connection is lost: %s\n", probe.reason);
	close_peer();
	return true;
}

/* Serves until the child process ends. Returns its exit status, or EINTR if a signal killed it. */
static bool serve_until_exit(pid_t work, bool (*answer)(struct conn *c, struct call *call),
			     int *status)
{
	const time_t end = time(NULL) + WORK_SECONDS * probe.time_factor;
	bool ok = true;

	while (waitpid(work, status, WNOHANG) != work) {
		if (ok && time(NULL) > end)
			ok = fail("the client's work does not end");
		else if (ok)
			ok = serve_one(answer);
		if (ok)
			continue;
		close_peer();
		kill_work(work);
		return false;
	}
	*status = WIFEXITED(*status) ? WEXITSTATUS(*status) : EINTR;
	return true;
}

/* Kills a child process and its own children. */
void kill_work(pid_t work)
{
	int i, status;

	kill(-work, SIGKILL);
	for (i = 0; i < 100 && waitpid(work, &status, WNOHANG) != work; i++)
		usleep(100000);
}

static bool mount_and_work(const struct test *t)
{
	const char *reason = probe.reason;
	int64_t start;
	int status;

	if (!serve_until_exit(start_work(t->mount ? t->mount : mount_v3), answer_correctly,
			      &status))
		return false;
	if (status)
		return fail("mount ended with %d", status);
	if (group->client_supports && peer && !group->client_supports(peer))
		return false;
	serving.connections = 1;
	if (!serve_until_exit(start_work(t->work), t->answer ? t->answer : answer_correctly,
			      &status))
		return false;
	/* The client may send an RDMA_DONE after the work has ended. */
	start = now_ms();
	while (status == t->work_errno && t->answer && !serving.call_seen &&
	       now_ms() - start < LATER_MS * probe.time_factor)
		if (!serve_one(t->answer))
			return false;
	if (status != t->work_errno)
		return fail("the work ended with \"%s\"%s%s", strerror(status),
			    *reason ? ": " : "", reason);
	if (t->answer && !serving.call_seen)
		return fail("the Call that the case is about did not arrive%s%s",
			    *reason ? ": " : "", reason);
	if (serving.connections < t->min_connections)
		return fail("%d connections, expected at least %d", serving.connections,
			    t->min_connections);
	if (!t->min_connections && serving.connections > 1)
		return fail("%d connections, expected 1; the last one ended by \"%s\"",
			    serving.connections, client_closed_why());
	return true;
}

static bool run_once(const struct group *g, const struct test *t)
{
	bool ok;
	int status;

	if (!conn_listen())
		return false;
	current = t;
	group = g;
	serving.mount_options = t->mount_options;
	serving.connections = 0;
	serving.case_number++;
	serving.call_seen = false;
	serving.late = false;
	serving.grant = CREDITS;
	ok = mount_and_work(t);
	/* The case may have sent more than was asked for: the client reposts its Receives first. */
	sleep_ms(100);
	ok = ok && serve_until_exit(start_work(unmount), answer_correctly, &status);
	if (ok && status)
		ok = fail("umount: %s", strerror(status));
	close_peer();
	if (!ok)
		umount2(MOUNTPOINT, MNT_FORCE | MNT_DETACH);
	return ok && memory_released(CLIENT_GAUGE);
}

/*
 * After a timeout rxe may lose a connection (Documentation/contributing.rst), and on a busy machine
 * this process may answer late. A case that expects one connection then proves nothing, and runs
 * again.
 */
bool run_client_case(const struct group *g, const struct test *t)
{
	int attempt;
	long before;
	bool ok;

	for (attempt = 1;; attempt++) {
		before = rxe_timeouts();
		ok = run_once(g, t);
		if (ok || probe.skip_reason || t->min_connections || serving.connections < 2 ||
		    attempt == ATTEMPTS || (rxe_timeouts() == before && !serving.late))
			return ok;
		printf("# a connection was lost, and %s: %s\n",
		       serving.late ? "an answer was late" : "rxe had timeouts", probe.reason);
		strcpy(probe.reason, "");
	}
}
