/* SPDX-License-Identifier: GPL-2.0 */
/*
 * File contents that can be verified.
 */

#ifndef PATTERN_H
#define PATTERN_H

#include <stdbool.h>
#include <stdint.h>

void new_pattern(void);
uint8_t pattern_byte(unsigned int i);
void fill_pattern(uint8_t *p, unsigned int from, unsigned int n);
bool check_pattern(const char *what, const uint8_t *p, unsigned int from, unsigned int n);

#endif
