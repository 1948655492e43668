// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the cases of a group.
 */

#include "probe.h"

static const char *skipped;

/* For a case that cannot be tried here: what it returns. */
bool skip(const char *reason)
{
	skipped = reason;
	return false;
}

/* A connection that is kept ends with the case that fails, or with the last one. */
static bool run_case(const struct group *g, const struct test *t, struct conn **c)
{
	const bool last = t == &g->tests[g->n - 1];
	const struct terms *terms = t->terms ? t->terms : g->terms;
	bool ok;

	strcpy(why, "");
	skipped = NULL;
	if (!g->open)
		return serve(g, t);
	if (!*c)
		*c = g->open(terms ? terms : &terms_plain);
	ok = *c && t->run(*c);
	if (!ok || !g->kept || last) {
		/* A client that still has work connects again, and has memory for that. */
		if (g->leave)
			g->leave();
		conn_close(*c);
		*c = NULL;
		ok = ok && nothing_left(g->open == conn_open ? SERVER_GAUGE : CLIENT_GAUGE);
	}
	return ok;
}

/* A case is announced before it runs: who reads the output of a machine that died knows. */
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
		} else if (skipped) {
			printf("ok %u - %s (%s) # SKIP %s\n", i + 1, t->name, t->ids, skipped);
		} else {
			printf("# %s\n", why);
			printf("not ok %u - %s (%s)\n", i + 1, t->name, t->ids);
			failures++;
		}
		fflush(stdout);
	}
	printf("# %u failed\n", failures);
	return !!failures;
}
