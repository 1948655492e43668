// SPDX-License-Identifier: GPL-2.0
/*
 * A server that answers Calls later than the mount's timeo. NFSv4 sends a Call again on another
 * connection only.
 */

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "answers.h"
#include "group.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"
#include "work.h"

#define TIMEO_S		15	/* the mount's timeo */
#define PAUSE_MS	3000	/* between two answers */
#define LATE_MS		8000	/* of an answer: the client may not see it within timeo */
#define RSIZE		65536	/* of one READ */

static int mount_short_timeo(void)
{
	char options[64];

	snprintf(options, sizeof(options), "rsize=%u,timeo=%u", RSIZE,
		 10 * TIMEO_S * probe.time_factor);
	serving.mount_options = options;
	return mount_v40();
}

/* The data of a READ of NFSv4 takes the Write chunk. */
static bool is_read4(const struct call *call)
{
	return call->version == 4 && call->write.n;
}

/* One READ, and beside it Calls of other tasks until it ends. */
static int read_beside_others(void)
{
	const pid_t reader = fork();
	struct statvfs unused;
	int status;

	if (!reader)
		_exit(read_some(0, RSIZE));
	while (waitpid(reader, &status, WNOHANG) != reader) {
		if (statvfs(MOUNTPOINT, &unused))
			return errno;
		usleep(100000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* Never answers the READ on the connection on which it is sent first. */
static bool pass_over(struct conn *c, struct call *call)
{
	if (!is_read4(call) || serving.connections > 1)
		return answer_correctly(c, call);
	serving.call_seen = true;
	return true;
}

/* Pauses before each READ's answer. All READs are outstanding from the start. */
static bool answer_slowly(struct conn *c, struct call *call)
{
	static int64_t last;
	bool ok;

	if (!is_read4(call))
		return answer_correctly(c, call);
	if (!serving.call_seen)
		last = now_ms();
	serving.call_seen = true;
	sleep_ms(PAUSE_MS);
	ok = answer_correctly(c, call);
	if (now_ms() - last > LATE_MS * probe.time_factor)
		serving.late = true;
	last = now_ms();
	return ok;
}

static const struct test tests[] = {
	{ "-", "the server answers younger Calls only: the client connects again",
	  .mount = mount_short_timeo, .answer = pass_over, .work = read_beside_others,
	  .min_connections = 2 },
	{ "-", "the server answers Calls in turn, the last one after three timeouts",
	  .mount = mount_short_timeo, .answer = answer_slowly, .work = read_large },
};

const struct group group_timeouts = {
	.name = "timeouts", .about = "a server that answers Calls later than timeo",
	.tests = tests, .n = COUNT(tests),
};
