/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server's end of a case in which the kernel's client works.
 */

#ifndef SERVE_H
#define SERVE_H

#include <sys/types.h>
#include "group.h"

struct serving {
	unsigned int case_number;	/* different in each case */
	int connections;		/* so far, of the client that does the work */
	bool call_seen;			/* the Call that the case is about */
	bool late;			/* an answer took longer than the case may */
	uint32_t grant;			/* credits in each Reply */
	bool ignore_errors;		/* RDMA_ERRORs of the client are no failure */
	const char *mount_options;
};

extern struct serving serving;

bool first_in_case(unsigned int *last);
void close_peer(void);
void kill_work(pid_t work);
bool run_client_case(const struct group *g, const struct test *t);

#endif
