// SPDX-License-Identifier: GPL-2.0
/*
 * Mutations of messages, all of them from a seed.
 */

#include "probe.h"

static uint64_t state;

/* Different seeds that are near each other give nothing alike. */
void seed_with(uint64_t seed, uint64_t batch)
{
	state = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (batch + 1) * 0xd1342543de82ef95ULL;
	for (int i = 0; i < 8; i++)
		chance(2);
}

uint32_t chance(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1dULL >> 32) % n;
}

static uint32_t some_word(const struct enc *e)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 16, 255, 256, 1024, 4096, 65536, 1 << 20, 0x10000000,
		0x40000000, 0x7ffffffc, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff,
	};

	switch (chance(4)) {
	case 0:
		return chance(0xffffffff);
	case 1:
		return e->n >= 4 ? get_word(e->b, chance(e->n / 4)) : 0;
	default:
		return edges[chance(COUNT(edges))];
	}
}

/*
 * A word of the header to change. Handles and addresses are changed seldom: that ends
 * the connection, and not much else.
 */
static unsigned int some_place(const struct enc *e, unsigned int words, uint32_t handle,
			       uint64_t area)
{
	unsigned int at = chance(words);

	while (chance(64) && (get_word(e->b, at) == handle || get_word(e->b, at) == area >> 32 ||
			      get_word(e->b, at) - (uint32_t)area < AREA))
		at = chance(words);
	return at;
}

static void mutate_once(struct enc *e, unsigned int header, uint32_t handle, uint64_t area)
{
	/* The header is what this is about; what it carries has other fuzzers. */
	const unsigned int within = chance(8) ? header : e->n;
	const unsigned int words = within / 4;
	unsigned int at, from, n;

	if (words < 2)
		return;
	at = some_place(e, words, handle, area);
	switch (chance(40)) {
	case 0 ... 19:
		put_word(e, at, some_word(e));
		return;
	case 20 ... 25:
		put_word(e, at, get_word(e->b, at) ^ 1U << chance(32));
		return;
	case 26 ... 33:
		put_word(e, at, get_word(e->b, at) + chance(9) - 4);
		return;
	case 34 ... 36:
		e->n = chance(2) ? 4 * at : chance(within);
		return;
	case 37:
		/* A word less. */
		memmove(e->b + 4 * at, e->b + 4 * at + 4, e->n - 4 * at - 4);
		e->n -= 4;
		return;
	case 38:
		/* A word more. */
		if (e->n + 4 > sizeof(e->b))
			return;
		memmove(e->b + 4 * at + 4, e->b + 4 * at, e->n - 4 * at);
		e->n += 4;
		put_word(e, at, some_word(e));
		return;
	default:
		/* A part of it again. */
		n = 4 * (1 + chance(8));
		from = 4 * chance(words);
		if (4 * at + n <= e->n && from + n <= e->n)
			memmove(e->b + 4 * at, e->b + from, n);
	}
}

/* One change or some, mostly to the header, which has so many octets. */
void mutate(struct conn *c, struct enc *e, unsigned int header)
{
	unsigned int n = 1 + (chance(3) ? 0 : chance(4));

	while (n--)
		mutate_once(e, header < e->n ? header : e->n, c->area_mr->rkey, at_area(c, 0));
}
