// SPDX-License-Identifier: GPL-2.0
/*
 * Mutations of messages, which follow from a seed.
 */

#include <string.h>
#include "mutate.h"
#include "probe.h"

static uint64_t state;

/* Neighbouring seeds, and neighbouring batches, give unrelated sequences. */
void seed_random(uint64_t seed, uint64_t batch)
{
	state = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (batch + 1) * 0xd1342543de82ef95ULL;
	for (int i = 0; i < 8; i++)
		random_below(2);
}

/* xorshift64* */
uint32_t random_below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1dULL >> 32) % n;
}

/* A random word, another word of the message, or a limit. */
static uint32_t random_word(const struct enc *e)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 16, 255, 256, 1024, 4096, 65536, 1 << 20, 0x10000000,
		0x40000000, 0x7ffffffc, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff,
	};

	switch (random_below(4)) {
	case 0:
		return random_below(0xffffffff);
	case 1:
		return e->len >= 4 ? get_word(e->buf, random_below(e->len / 4)) : 0;
	default:
		return edges[random_below(COUNT(edges))];
	}
}

/*
 * Chooses the word to change. Handles and offsets are chosen rarely: changing them mostly ends
 * the connection.
 */
static unsigned int random_place(const struct enc *e, unsigned int words, uint32_t handle,
				 uint64_t area)
{
	unsigned int at = random_below(words);

	while (random_below(64) &&
	       (get_word(e->buf, at) == handle || get_word(e->buf, at) == area >> 32 ||
		get_word(e->buf, at) - (uint32_t)area < AREA))
		at = random_below(words);
	return at;
}

static void mutate_once(struct enc *e, unsigned int hdr_len, uint32_t handle, uint64_t area)
{
	/* Mostly the transport header: the upper layers have fuzzers of their own. */
	const unsigned int within = random_below(8) ? hdr_len : e->len;
	const unsigned int words = within / 4;
	unsigned int at, from, n;

	if (words < 2)
		return;
	at = random_place(e, words, handle, area);
	switch (random_below(40)) {
	case 0 ... 19:
		put_word(e, at, random_word(e));
		return;
	case 20 ... 25:
		/* Flip a bit. */
		put_word(e, at, get_word(e->buf, at) ^ 1U << random_below(32));
		return;
	case 26 ... 33:
		put_word(e, at, get_word(e->buf, at) + random_below(9) - 4);
		return;
	case 34 ... 36:
		/* Truncate. */
		e->len = random_below(2) ? 4 * at : random_below(within);
		return;
	case 37:
		/* Remove a word. */
		memmove(e->buf + 4 * at, e->buf + 4 * at + 4, e->len - 4 * at - 4);
		e->len -= 4;
		return;
	case 38:
		/* Insert a word. */
		if (e->len + 4 > sizeof(e->buf))
			return;
		memmove(e->buf + 4 * at + 4, e->buf + 4 * at, e->len - 4 * at);
		e->len += 4;
		put_word(e, at, random_word(e));
		return;
	default:
		/* Copy some words to another place. */
		n = 4 * (1 + random_below(8));
		from = 4 * random_below(words);
		if (4 * at + n <= e->len && from + n <= e->len)
			memmove(e->buf + 4 * at, e->buf + from, n);
	}
}

/* One mutation or a few, mostly of the header. */
void mutate(const struct conn *c, struct enc *e, unsigned int hdr_len)
{
	unsigned int n = 1 + (random_below(3) ? 0 : random_below(4));

	while (n--)
		mutate_once(e, hdr_len < e->len ? hdr_len : e->len, c->area_mr->rkey,
			    area_addr(c, 0));
}
