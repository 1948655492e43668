// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the cases of a group, and prints KTAP.
 */

#include <stdio.h>
#include <string.h>
#include "counters.h"
#include "group.h"
#include "probe.h"
#include "serve.h"

/* A connection that is kept open is closed after a case that fails, and after the last one. */
static bool run_case(const struct group *g, const struct test *t, struct conn **c)
{
	const bool last = t == &g->tests[g->n - 1];
	const struct params *params = t->params ? t->params : g->params;
	bool ok;

	strcpy(probe.reason, "");
	probe.skip_reason = NULL;
	if (!g->open)
		return run_client_case(g, t);
	if (!*c)
		*c = g->open(params ? params : &params_default);
	ok = *c && t->run(*c);
	if (!ok || !g->keep_open || last) {
		/* A client with work left would reconnect, and allocate memory again. */
		if (g->cleanup)
			g->cleanup();
		conn_close(*c);
		*c = NULL;
		ok = ok && memory_released(g->open == conn_open ? SERVER_GAUGE : CLIENT_GAUGE);
	}
	return ok;
}

/* Each case is announced first, so that the output of a guest that died names the case. */
int run_group(const struct group *g, unsigned int from)
{
	struct conn *c = NULL;
	unsigned int i, failures = 0;

	printf("KTAP version 1\n1..%u\n", g->n);
	for (i = from - 1; i < g->n; i++) {
		const struct test *t = &g->tests[i];

		printf("# case %u - %s (%s)\n", i + 1, t->name, t->ids);
		fflush(stdout);
		if (run_case(g, t, &c)) {
			printf("ok %u - %s (%s)\n", i + 1, t->name, t->ids);
		} else if (probe.skip_reason) {
			printf("ok %u - %s (%s) # SKIP %s\n", i + 1, t->name, t->ids,
			       probe.skip_reason);
		} else {
			printf("# %s\n", probe.reason);
			printf("not ok %u - %s (%s)\n", i + 1, t->name, t->ids);
			failures++;
		}
		fflush(stdout);
	}
	printf("# %u failed\n", failures);
	return !!failures;
}
