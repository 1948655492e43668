// SPDX-License-Identifier: GPL-2.0
/*
 * File contents that can be verified.
 */

#include "pattern.h"
#include "probe.h"

/* Selects the pattern. "probe --pattern" prints the first one. */
static unsigned int salt;

/* Before a WRITE: neither the file nor any page of the server holds the new pattern yet. */
void new_pattern(void)
{
	salt++;
}

uint8_t pattern_byte(unsigned int i)
{
	return i * 7 + (i >> 8) * 13 + (i >> 16) + salt * 101;
}

/* The bytes of a file that starts at @from. */
void fill_pattern(uint8_t *p, unsigned int from, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		p[i] = pattern_byte(from + i);
}

bool check_pattern(const char *what, const uint8_t *p, unsigned int from, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (p[i] != pattern_byte(from + i))
			return fail("%s: byte %u is %02x, not %02x", what, i, p[i],
				    pattern_byte(from + i));
	return true;
}
