/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many hostile clients, and the latency of an honest one.
 */

#ifndef FLOOD_H
#define FLOOD_H

int flood(const char *kind, unsigned int clients, unsigned int seconds);
int stat_latency(const char *file, unsigned int seconds);

#endif
