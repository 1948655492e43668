// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how soon writers go on when their NFS server is back:
 *
 *	restart SECONDS FILE...
 *
 * A process for each file writes 4 KiB once a second. Stops the server, starts it again after
 * SECONDS, and prints the number of writers, and the least, the median and the longest time in ms
 * from the return of the RDMA listener to the end of a write.
 */

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEN		4096
#define LIMIT_MS	600000L		/* for all writers to go on */

struct writer {
	volatile long writes;
	volatile long went_on;		/* the end of the first write since the return, in ms */
};

static volatile long *returned;		/* when the listener came back, in ms; 0 before */

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static void *shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

/* Ends with its parent: a reader of the parent's output waits for all that can write to it. */
static void write_on(const char *path, struct writer *w)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0666);
	void *buffer = aligned_alloc(LEN, LEN);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0 || !buffer)
		err(1, "%s", path);
	memset(buffer, 0x5a, LEN);
	for (;; sleep(1)) {
		if (pwrite(fd, buffer, LEN, 0) != LEN)
			err(1, "%s", path);
		w->writes++;
		if (*returned && !w->went_on)
			w->went_on = now_ms();
	}
}

static void run(const char *command)
{
	if (system(command))
		errx(1, "failed: %s", command);
}

/* Waits until each writer has written, or has gone on. Fails after @ms. */
static void wait_for_all(const struct writer *all, int n, long ms)
{
	const long end = now_ms() + ms;

	for (int i = 0; i < n; usleep(10000)) {
		while (i < n && (*returned ? all[i].went_on : all[i].writes))
			i++;
		if (i < n && now_ms() > end)
			errx(1, "writer %d does not write within %ld ms", i, ms);
	}
}

static int by_value(const void *a, const void *b)
{
	const long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const int n = argc - 2;

	if (n < 1)
		errx(2, "usage: restart SECONDS FILE...");
	struct writer *all = shared(n * sizeof(*all));
	long *took = calloc(n, sizeof(*took));
	pid_t *pids = calloc(n, sizeof(*pids));

	if (!took || !pids)
		err(1, "calloc");
	returned = shared(sizeof(*returned));
	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			err(1, "fork");
		if (!pids[i])
			write_on(argv[i + 2], &all[i]);
	}
	wait_for_all(all, n, LIMIT_MS);
	run("rpc.nfsd 0");
	sleep(atoi(argv[1]));
	run("rpc.nfsd 8");
	*returned = now_ms();
	run("echo rdma 20049 >/proc/fs/nfsd/portlist");
	wait_for_all(all, n, LIMIT_MS);
	for (int i = 0; i < n; i++) {
		took[i] = all[i].went_on - *returned;
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	qsort(took, n, sizeof(*took), by_value);
	printf("%d %ld %ld %ld\n", n, took[0], took[n / 2], took[n - 1]);
	return 0;
}
