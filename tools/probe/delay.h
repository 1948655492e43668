/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Delays in kernel functions, by selftests/modules/delay_fn.c.
 */

#ifndef DELAY_H
#define DELAY_H

#include <stdbool.h>

bool delay_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool delay_end(void);
bool delay_concurrent(const char *format, unsigned int *a, unsigned int *b);

#endif
