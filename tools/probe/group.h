/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cases and groups of cases.
 */

#ifndef GROUP_H
#define GROUP_H

#include "conn.h"

struct call;

/*
 * A case. If the probe is a client, or a server that calls its client, @run gets a connection.
 * Otherwise the kernel's client does @work, and @answer, or answer_correctly(), answers each of
 * its Calls; @answer sets serving.call_seen at the Call that the case is about.
 */
struct test {
	const char *ids;		/* requirements in Documentation/conformance, or "-" */
	const char *name;
	bool (*run)(struct conn *c);
	bool (*answer)(struct conn *c, struct call *call);
	int (*mount)(void);		/* default: mount_v3() */
	int (*work)(void);		/* returns an errno */
	int work_errno;			/* the expected one */
	const struct params *params;	/* default: the group's, or params_default */
	const struct params *(*params_of)(unsigned int connection);	/* or different ones */
	const char *mount_options;
	int min_connections;		/* of the client; default: exactly one */
};

struct group {
	const char *name, *about;
	const struct test *tests;
	unsigned int n;
	const struct params *params;
	/* Connects; NULL if the kernel's client does. */
	struct conn *(*open)(const struct params *params);
	bool keep_open;			/* one connection for all cases, until one fails */
	/* Answers a Call that no case is about; returns whether it did. */
	bool (*answer_other)(struct conn *c, struct call *call, bool *ok);
	/* After the mount: skips the case if the client cannot do what it is about. */
	bool (*client_supports)(const struct conn *c);
	void (*cleanup)(void);		/* before the connection is closed */
};

int run_group(const struct group *g, unsigned int from);

extern const struct group group_agreement, group_backchannel, group_backchannel_early,
	group_bad_read_lists, group_chunks, group_credits, group_exposed, group_exposer,
	group_headers, group_large_blocks, group_late_reply, group_lists, group_many_segments,
	group_memory_windows, group_no_read_response, group_no_receives, group_other_servers,
	group_peers, group_pulled, group_read_throttle, group_replies, group_session,
	group_split_items, group_timeouts, group_unanswered, group_wrong_invalidate;

#endif
