// SPDX-License-Identifier: GPL-2.0
/*
 * Many hostile clients, and the latency of an honest one.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "flood.h"
#include "hostile.h"
#include "probe.h"

#define PAUSE_US	2000	/* between steps: other processes need the processors, too */
#define STAT_PAUSE_MS	100

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* Runs hostile clients for that long, or until SIGTERM. Prints a line as soon as all have connected once. */
int flood(const char *kind, unsigned int clients, unsigned int seconds)
{
	const int64_t until = now_ms() + 1000LL * seconds;
	struct hostile *all = calloc(clients, sizeof(*all));
	unsigned int i, connected = 0, connections = 0;

	for (i = 0; i < clients; i++)
		all[i].kind = hostile_find(kind);
	signal(SIGTERM, end);
	while (now_ms() < until && !ended) {
		for (i = 0; i < clients && !ended; i++) {
			hostile_step(&all[i]);
			if (connected == i && all[i].connections && ++connected == clients) {
				printf("all connected\n");
				fflush(stdout);
			}
		}
		usleep(PAUSE_US);
	}
	for (i = 0; i < clients; i++)
		connections += all[i].connections;
	printf("%u clients made %u connections\n", clients, connections);
	fflush(stdout);
	for (i = 0; i < clients; i++)
		hostile_end(&all[i]);
	free(all);
	return 0;
}

/* Calls stat() for that long. Prints how often, and the mean and the longest time in ms. */
int stat_latency(const char *file, unsigned int seconds)
{
	const int64_t end = now_ms() + 1000LL * seconds;
	int64_t start, took, sum = 0, most = 0;
	unsigned int n = 0;
	struct stat st;

	do {
		start = now_ms();
		if (stat(file, &st)) {
			perror(file);
			return 1;
		}
		took = now_ms() - start;
		sum += took;
		most = took > most ? took : most;
		n++;
		usleep(1000 * STAT_PAUSE_MS);
	} while (now_ms() < end);
	printf("%u %lld %lld\n", n, (long long)sum / n, (long long)most);
	return 0;
}
