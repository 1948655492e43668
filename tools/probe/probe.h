/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings, the reason of a failure, and time.
 */

#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * For what has to happen. It takes long on a busy machine, or if a message of the CM is lost. Less
 * than the server's stall_seconds, by default.
 */
#define PATIENCE_MS	60000

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

struct probe {
	const char *address;	/* of the server to test, or to listen at */
	const char *port;
	const char *dir;	/* below the server's NFSv4 root */
	int time_factor;	/* TIME_FACTOR: all time limits are multiplied by this */
	int settle_ms;		/* SETTLE_MS: pause before the first message of a connection */
	uint32_t next_xid;
	char reason[512];	/* of the last failure */
	const char *skip_reason;
};

extern struct probe probe;

/* Both return false, so that a check can end with "return fail(...)". */
bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool skip(const char *reason);

static inline uint32_t new_xid(void)
{
	return probe.next_xid++;
}

int64_t now_ms(void);
void sleep_ms(unsigned int ms);

#endif
