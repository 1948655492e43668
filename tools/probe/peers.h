/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients that disconnect early, or wait to be accepted.
 */

#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>

struct conn;

bool connect_and_leave(void);
bool wait_for_busy_server(struct conn *c);	/* waiting.c */

#endif
