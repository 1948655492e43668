/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ways for a client to keep the server's work requests from completing.
 */

#ifndef STALL_H
#define STALL_H

#include "conn.h"

#define WRITE_SIZE	(256 << 10)	/* bytes of each WRITE of post_writes() */

bool post_writes(struct conn *c, unsigned int n);
bool stop_read_responses(struct conn *c);
bool withhold_receives(struct conn *c, unsigned int replies);

#endif
