// SPDX-License-Identifier: GPL-2.0
/*
 * Delays in kernel functions, by selftests/modules/delay_fn.c.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "delay.h"

/* Loads the module with these parameters. */
bool delay_start(const char *format, ...)
{
	char params[256], command[320];
	va_list ap;

	va_start(ap, format);
	vsnprintf(params, sizeof(params), format, ap);
	va_end(ap);
	snprintf(command, sizeof(command), "insmod /probe/delay_fn.ko %s", params);
	return !system(command);
}

bool delay_end(void)
{
	return !system("rmmod delay_fn");
}

/* Scans two of the numbers of calls that came while another call was being delayed. */
bool delay_concurrent(const char *format, unsigned int *a, unsigned int *b)
{
	FILE *f = fopen("/sys/module/delay_fn/parameters/concurrent", "r");
	const bool ok = f && fscanf(f, format, a, b) == 2;

	if (f)
		fclose(f);
	return ok;
}
