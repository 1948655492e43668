/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Accesses to the client's memory by its server.
 */

#ifndef EXPOSED_H
#define EXPOSED_H

#include "calls.h"

#define SOON_MS	300	/* in which the client would end an exposure */

bool denied(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s, int64_t by,
	    unsigned int len);
bool denied_soon(struct conn *c, enum ibv_wr_opcode opcode, const struct segment *s, bool next);

/* killed_task.c */
bool write_for_killed(struct conn *c, struct call *call);
bool invalidate_for_killed(struct conn *c, struct call *call);
int list_and_be_killed(void);
int list_beside_writer(void);

#endif
