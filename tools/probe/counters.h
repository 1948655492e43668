/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of the device and of the module.
 */

#ifndef COUNTERS_H
#define COUNTERS_H

#include <stdio.h>
#include "conn.h"

/* Bytes that the module has allocated for messages. */
#define SERVER_GAUGE	"/proc/sys/sunrpc/svc_rdma/message_octets"
#define CLIENT_GAUGE	"/proc/sys/sunrpc/rdma_message_octets"

unsigned long rnr_count(const struct conn *c);
bool no_rnr_since(const struct conn *c, unsigned long before);
long rxe_timeouts(void);
bool memory_released(const char *gauge);
const char *client_closed_why(void);

long number_from(FILE *f, int (*close_file)(FILE *f));
long server_value(const char *name);
bool set_server_value(const char *name, unsigned int value);

#endif
