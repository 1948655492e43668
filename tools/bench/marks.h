/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a program in the guest tells count.c which instructions to count: it calls empty functions at
 * these addresses, where it has mapped a page. Row N begins at the first and ends at the second.
 */
#define MARKS		0x5eed00000000UL
#define MARKS_LEN	4096UL
#define MARK_LEN	16
#define MARK_BEGIN(row)	(MARKS + MARK_LEN * (2 * (row)))
#define MARK_END(row)	(MARKS + MARK_LEN * (2 * (row) + 1))
