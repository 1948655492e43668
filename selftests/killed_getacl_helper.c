// SPDX-License-Identifier: GPL-2.0
/*
 * Kills processes whose RPCs are in flight:
 *
 *   killed_getacl_helper FILE OTHER KILLS
 *
 * Children get the ACL of FILE and the attributes of OTHER in turn and are killed after some
 * milliseconds, KILLS in total. The mount must not cache either.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PROCESSES	4
#define MAX_ACL		65536
#define MAX_DELAY_US	8000

/*
 * A system call may fail with this error because another process was killed, with any transport:
 * xprt_transmit() passes the error of the killed task to the task that is sending.
 */
#define ERESTARTSYS	512

static bool failed(int rc)
{
	return rc < 0 && errno != ERESTARTSYS;
}

static void ask(const char *file, const char *other)
{
	static char acl[MAX_ACL];
	struct stat st;

	for (;;) {
		if (failed(getxattr(file, "system.nfs4_acl", acl, sizeof(acl))))
			err(1, "%s", file);
		if (failed(stat(other, &st)))
			err(1, "%s", other);
	}
}

static void kill_one(const char *file, const char *other)
{
	const pid_t pid = fork();
	int status;

	if (pid < 0)
		err(2, "fork");
	if (!pid)
		ask(file, other);
	usleep(rand() % MAX_DELAY_US);
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		errx(1, "a child exited before it was killed");
}

int main(int argc, char **argv)
{
	int kills, status, failures = 0;

	if (argc != 4)
		errx(2, "see the source");
	kills = atoi(argv[3]) / PROCESSES;
	for (int i = 0; i < PROCESSES; i++) {
		if (fork())
			continue;
		srand(i + 1);
		for (int each = 0; each < kills; each++)
			kill_one(argv[1], argv[2]);
		return 0;
	}
	while (wait(&status) > 0)
		failures |= !WIFEXITED(status) || WEXITSTATUS(status);
	return failures;
}
