// SPDX-License-Identifier: GPL-2.0
/*
 * Settings, the reason of a failure, and time.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "probe.h"

struct probe probe = { .port = "20049", .dir = "export", .time_factor = 1 };

bool fail(const char *fmt, ...)
{
	char text[sizeof(probe.reason)];
	va_list ap;

	/* probe.reason itself may be among the arguments. */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strcpy(probe.reason, text);
	return false;
}

/* Marks the case as not applicable to this device or peer. */
bool skip(const char *reason)
{
	probe.skip_reason = reason;
	return false;
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Sleeps so many milliseconds times TIME_FACTOR. */
void sleep_ms(unsigned int ms)
{
	usleep(1000 * ms * probe.time_factor);
}
