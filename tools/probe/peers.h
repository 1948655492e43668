/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients that disconnect early.
 */

#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>

bool connect_and_leave(void);

#endif
