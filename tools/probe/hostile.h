/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients that withhold what the server needs, or send more than it has granted. One thread runs
 * many of them.
 */

#ifndef HOSTILE_H
#define HOSTILE_H

#include "conn.h"

struct hostile;

struct hostile_kind {
	const char *name, *about;
	const struct params *params;
	bool (*start)(struct hostile *h);	/* after connecting; may wait for the server */
	bool (*step)(struct hostile *h);	/* false ends the connection */
};

struct hostile {
	const struct hostile_kind *kind;
	struct conn *c;
	unsigned int outstanding;	/* Sends that have not completed */
	unsigned int sent, replies;	/* on this connection */
	unsigned int connections;
	int64_t next_ms;		/* when to post another Receive */
};

const struct hostile_kind *hostile_find(const char *name);
void hostile_list(void);
bool hostile_step(struct hostile *h);
void hostile_end(struct hostile *h);

#endif
