// SPDX-License-Identifier: GPL-2.0
/*
 * A case in which the kernel's client works: it mounts, does what the case wants, and
 * unmounts, and is served by this process all the while.
 */

#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include "probe.h"

#define WORK_SECONDS	300

int connections;
bool seen;
unsigned int serial;
static const struct test *current;
static const struct group *group;
static struct conn *peer;

void hang_up(void)
{
	conn_close(peer);
	peer = NULL;
	forget_calls();
}

static const struct terms *next_terms(void)
{
	if (current->terms_of)
		return current->terms_of(connections);
	if (current->terms)
		return current->terms;
	return group->terms ? group->terms : &terms_plain;
}

/* Answers a Call, if there is one. What the end of a connection spoils is no failure. */
static bool attend_once(bool (*answer)(struct conn *c, struct call *call))
{
	struct conn *next = conn_accept(next_terms(), peer ? 0 : 1);
	struct call call;
	bool ok;

	if (next) {
		if (peer)
			printf("# the client connects again\n");
		hang_up();
		peer = next;
		connections++;
	}
	if (!peer)
		return true;
	switch (next_call(peer, &call, 1)) {
	case NONE:
		if (!gone(peer))
			return true;
		hang_up();
		return true;
	case LOST:
		printf("# a connection is lost\n");
		hang_up();
		return true;
	case WRONG:
		return false;
	case CALL:
		break;
	}
	if (!group->others || !group->others(peer, &call, &ok))
		ok = answer(peer, &call);
	call_done(&call);
	if (!ok && peer && (usleep(20000 * patience), gone(peer))) {
		printf("# a connection is lost: %s\n", why);
		hang_up();
		ok = true;
	}
	return ok;
}

/* Serves until the work is done. */
bool attend(pid_t work, bool (*answer)(struct conn *c, struct call *call), int *status)
{
	const time_t end = time(NULL) + WORK_SECONDS * patience;
	bool ok = true;

	while (waitpid(work, status, WNOHANG) != work) {
		if (ok && time(NULL) > end)
			ok = fail("the client does not come to an end");
		else if (ok)
			ok = attend_once(answer);
		if (ok)
			continue;
		hang_up();
		end_work(work);
		return false;
	}
	*status = WIFEXITED(*status) ? WEXITSTATUS(*status) : EINTR;
	return true;
}

/* Ends what need not be waited for any longer. */
void end_work(pid_t work)
{
	int i, status;

	kill(-work, SIGKILL);
	for (i = 0; i < 100 && waitpid(work, &status, WNOHANG) != work; i++)
		usleep(100000);
}

static bool work(const struct test *t)
{
	const int most = t->connections ? t->connections : 1;
	int status;

	if (!attend(start_work(mount_here), answer_honestly, &status))
		return false;
	if (status)
		return fail("mount ended with %d", status);
	if (group->fits && peer && !group->fits(peer))
		return false;
	connections = 1;
	if (!attend(start_work(t->work), t->answer ? t->answer : answer_honestly, &status))
		return false;
	if (status != t->expected)
		return fail("the work ended with \"%s\"%s%s", strerror(status), *why ? ": " : "", why);
	if (t->answer && !seen)
		return fail("the Call did not come%s%s", *why ? ": " : "", why);
	if (most > 0 ? connections > most : connections < -most)
		return fail("%d connections", connections);
	return true;
}

bool serve(const struct group *g, const struct test *t)
{
	bool ok;
	int status;

	if (!conn_listen())
		return false;
	current = t;
	group = g;
	mount_options = t->options;
	connections = 0;
	serial++;
	seen = false;
	grant = 32;
	ok = work(t);
	/* More than was asked for may have taken all of its Receives, until it looks at them. */
	usleep(100000 * patience);
	ok = ok && attend(start_work(unmount), answer_honestly, &status);
	if (ok && status)
		ok = fail("cannot unmount: %s", strerror(status));
	hang_up();
	if (!ok)
		umount2(MOUNTPOINT, MNT_FORCE | MNT_DETACH);
	return ok && nothing_left(CLIENT_GAUGE);
}
