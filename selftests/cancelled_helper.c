// SPDX-License-Identifier: GPL-2.0
/*
 * RPCs that are given up in flight:
 *
 *   cancelled_helper FILE OTHER KILLS
 *
 * Children ask for the ACL of FILE and the attributes of OTHER, one after the other,
 * and are killed after a moment, so many in all. Neither may be cached.
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

#define AT_A_TIME	4
#define LONGEST		65536
#define MOMENT		8000	/* microseconds at most */

/*
 * What a call may get while another process is killed, from SUNRPC, of any transport:
 * xprt_transmit() hands the error of the killed task to the one that was sending.
 */
#define ERESTARTSYS	512

static bool failed(int rc)
{
	return rc < 0 && errno != ERESTARTSYS;
}

static void ask(const char *file, const char *other)
{
	static char acl[LONGEST];
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
	usleep(rand() % MOMENT);
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		errx(1, "a child has ended by itself");
}

int main(int argc, char **argv)
{
	int kills, status, failures = 0;

	if (argc != 4)
		errx(2, "see the source");
	kills = atoi(argv[3]) / AT_A_TIME;
	for (int i = 0; i < AT_A_TIME; i++) {
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
