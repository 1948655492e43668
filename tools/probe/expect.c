// SPDX-License-Identifier: GPL-2.0
/*
 * What is expected of a server.
 */

#include "probe.h"

/* An error as both reasons have it: the header and the reason. */
static bool is_any_error(const struct reply *r, uint32_t xid, uint32_t err)
{
	if (r->len < 20 || get_word(r->p, HDR_XID) != xid || get_word(r->p, HDR_PROC) != RDMA_ERROR || get_word(r->p, 4) != err)
		return fail("%u octets, xid %x, proc %u, word 4 %u; wanted xid %x, RDMA_ERROR, %u", r->len,
			    get_word(r->p, HDR_XID), get_word(r->p, HDR_PROC), get_word(r->p, 4), xid, err);
	if (r->invalidated)
		return fail("an error that invalidates %x", r->invalidated_rkey);
	return get_word(r->p, HDR_CREDITS) ? true : fail("an error that grants no credits");
}

/* ERR_CHUNK says nothing else, and has no payload. */
bool is_error(const struct reply *r, uint32_t xid, uint32_t err)
{
	if (!is_any_error(r, xid, err))
		return false;
	if (r->len != 20 || get_word(r->p, HDR_VERS) != 1)
		return fail("an error of %u octets, vers %u", r->len, get_word(r->p, HDR_VERS));
	return true;
}

/* ERR_VERS says which version it was asked by, and that there is only version 1. */
bool is_err_vers(const struct reply *r, uint32_t xid, uint32_t vers)
{
	if (!is_any_error(r, xid, ERR_VERS))
		return false;
	if (r->len != 28 || get_word(r->p, HDR_VERS) != vers || get_word(r->p, 5) != 1 || get_word(r->p, 6) != 1)
		return fail("%u octets, vers %u, range %u..%u", r->len, get_word(r->p, HDR_VERS), get_word(r->p, 5),
			    get_word(r->p, 6));
	return true;
}

/* The next word; where there is none, @w is behind the end. */
static bool word_at(const struct reply *r, unsigned int *w, uint32_t *word)
{
	const unsigned int at = (*w)++;

	if (4 * *w > r->len)
		return false;
	*word = get_word(r->p, at);
	return true;
}

/* Goes past a Write chunk, if there is one and the message is long enough for it. */
static bool chunk_at(const struct reply *r, unsigned int *w)
{
	uint32_t present, n;

	if (!word_at(r, w, &present) || !present)
		return false;
	/* Neither a chunk nor the end of the list: nothing can be behind it. */
	if (present > 1)
		*w = r->len;
	if (!word_at(r, w, &n))
		return false;
	*w += 4 * (n < r->len ? n : r->len);
	return 4 * *w < r->len;
}

/* Returns the offset of the RPC message in an RDMA_MSG without Read list; 0 for RDMA_NOMSG. */
bool body_at(const struct reply *r, uint32_t xid, unsigned int *at)
{
	unsigned int w = 4;

	if (r->len < 28 || get_word(r->p, HDR_XID) != xid || get_word(r->p, HDR_VERS) != 1)
		return fail("%u octets, xid %x (wanted %x), vers %u", r->len, get_word(r->p, HDR_XID), xid,
			    get_word(r->p, HDR_VERS));
	if (get_word(r->p, HDR_PROC) == RDMA_ERROR)
		return fail("RDMA_ERROR %u", get_word(r->p, 4));
	if (get_word(r->p, HDR_PROC) > RDMA_NOMSG || !get_word(r->p, HDR_CREDITS))
		return fail("procedure %u, %u credits", get_word(r->p, HDR_PROC), get_word(r->p, HDR_CREDITS));
	if (get_word(r->p, w++))
		return fail("Read list in a Reply");
	while (chunk_at(r, &w))
		;
	chunk_at(r, &w);
	if (4 * w > r->len)
		return fail("the lists do not end in %u octets", r->len);
	*at = get_word(r->p, HDR_PROC) == RDMA_NOMSG ? 0 : 4 * w;
	if (!*at && 4 * w != r->len)
		return fail("%u octets behind the header of a Long Reply", r->len - 4 * w);
	if (*at && (r->len < *at + 4 || get_word(r->p + *at, RPC_XID) != xid))
		return fail("xid %x in the payload (wanted %x)", get_word(r->p + *at, RPC_XID), xid);
	return true;
}

/* It answers one of @n Calls, from this XID on, that has not been answered before. */
bool answers_one(const struct reply *r, uint32_t first, unsigned int n, bool *seen,
		 unsigned int *at)
{
	const uint32_t i = get_word(r->p, HDR_XID) - first;

	if (i >= n)
		return fail("xid %x (wanted %x to %x)", get_word(r->p, HDR_XID), first, first + n - 1);
	if (seen[i])
		return fail("xid %x is answered twice", get_word(r->p, HDR_XID));
	seen[i] = true;
	return body_at(r, first + i, at);
}

/* The status of the compound whose Reply starts at @p, and where its results start. */
bool compound_ok(const uint8_t *p, unsigned int ops)
{
	if (get_word(p, RPC_TYPE) != 1 || get_word(p, RPC_REPLY_STAT) || get_word(p, RPC_ACCEPT_STAT))
		return fail("RPC: msg_type %u, stat %u, accept_stat %u", get_word(p, 1), get_word(p, 2), get_word(p, 5));
	if (get_word(p, 6))
		return fail("NFS4 status %u", get_word(p, 6));
	if (get_word(p, 8) != ops + 2)
		return fail("%u results", get_word(p, 8));
	return true;
}

/* The same of one that was written to memory, which has its XID in it as well. */
bool compound_of(const uint8_t *p, uint32_t xid, unsigned int ops)
{
	if (get_word(p, RPC_XID) != xid)
		return fail("a Long Reply with xid %x (wanted %x)", get_word(p, RPC_XID), xid);
	return compound_ok(p, ops);
}

/*
 * A Write chunk or the Reply chunk comes back as it was offered, but for the lengths: its
 * segments are filled in their order (RFC 8166 Section 3.4.6). Goes past it.
 */
bool came_back(const struct reply *r, unsigned int *w, const uint8_t *offered, uint32_t octets)
{
	const uint32_t n = get_word(offered, 1);
	const uint8_t *p = r->p + 4 * *w;
	uint32_t i, length;

	if (get_word(p, RPC_XID) != 1 || get_word(p, 1) != n)
		return fail("a chunk of %u segments came back as %u %u", n, get_word(p, RPC_XID), get_word(p, 1));
	for (i = 0; i < n; i++) {
		offered += i ? 16 : 8;
		p += i ? 16 : 8;
		if (get_word(p, 0) != get_word(offered, 0) || memcmp(p + 8, offered + 8, 8))
			return fail("segment %u of %u came back as another", i, n);
		length = get_word(offered, 1) < octets ? get_word(offered, 1) : octets;
		if (get_word(p, 1) != length)
			return fail("segment %u of %u: %u octets, not %u", i, n, get_word(p, 1), length);
		octets -= length;
	}
	*w += 2 + 4 * n;
	return octets ? fail("%u octets too many for the chunk", octets) : true;
}

/* The Write list ends here, and there is no Reply chunk. */
bool no_more_returned(const struct reply *r, unsigned int w)
{
	if (get_word(r->p, w) || get_word(r->p, w + 1))
		return fail("more chunks came back than were offered");
	return true;
}

/* So much is left of the Reply in the message, where that has its payload. */
bool is_left(const struct reply *r, unsigned int at, unsigned int octets)
{
	if (!at || r->len - at != octets)
		return fail("%u octets are inline, not %u", at ? r->len - at : 0, octets);
	return true;
}

bool alive(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;
	unsigned int at;

	enc_null_call(&e, xid);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at))
		return false;
	if (!at)
		return fail("NULL: no Reply behind the header");
	if (get_word(r.p + at, RPC_TYPE) != 1 || get_word(r.p + at, RPC_ACCEPT_STAT))
		return fail("NULL: msg_type %u, accept_stat %u", get_word(r.p + at, RPC_TYPE), get_word(r.p + at, RPC_ACCEPT_STAT));
	return true;
}

/*
 * Sends that came before there was a Receive for them, at either end of the device, where it
 * counts them. The one who sends does not notice: it tries again, as the other end asks it to.
 */
unsigned long early_sends(const struct conn *c)
{
	static bool said;
	unsigned long n = 0;
	char path[128];
	FILE *f;

	/* What the kernel tells is up to 10 ms old. */
	usleep(20000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/hw_counters/send_rnr_err",
		 ibv_get_device_name(c->id->verbs->device), c->id->port_num);
	f = fopen(path, "r");
	if ((!f || fscanf(f, "%lu", &n) != 1) && !said) {
		said = true;
		printf("# %s does not count Sends without a Receive\n",
		       ibv_get_device_name(c->id->verbs->device));
	}
	if (f)
		fclose(f);
	return n;
}

/* Where they are not counted this says nothing, as the output tells. */
bool none_early(const struct conn *c, unsigned long before)
{
	const unsigned long n = early_sends(c) - before;

	return n ? fail("%lu Sends found no Receive", n) : true;
}

bool refused(struct conn *c, const struct enc *e, uint32_t xid, uint32_t err)
{
	struct reply r;

	return exchange(c, e, &r) && is_error(&r, xid, err) && alive(c);
}

bool silent(struct conn *c, const struct enc *e)
{
	struct reply r;

	if (!send_msg(c, e) || !get_reply(c, &r, 300))
		return false;
	return r.any ? fail("answered: proc %u", get_word(r.p, HDR_PROC)) : true;
}

bool ignored(struct conn *c, const struct enc *e)
{
	return silent(c, e) && alive(c);
}

/*
 * Which of the patterns it is that files hold: the first one is that of "probe --pattern".
 * What is to be WRITTEN is of another one each time, so that neither the file nor a page of
 * the server's holds it already.
 */
static unsigned int salt;

void renew(void)
{
	salt++;
}

uint8_t pattern(unsigned int i)
{
	return i * 7 + (i >> 8) * 13 + (i >> 16) + salt * 101;
}

void fill(uint8_t *p, unsigned int from, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		p[i] = pattern(from + i);
}

bool same(const char *what, const uint8_t *p, unsigned int from, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (p[i] != pattern(from + i))
			return fail("%s: octet %u is %02x, not %02x", what, i, p[i], pattern(from + i));
	return true;
}

uint64_t at_area(struct conn *c, unsigned int off)
{
	return (uintptr_t)c->area + off;
}

/* The memory of connections that are gone is given back, where there is a gauge of it. */
bool nothing_left(const char *gauge)
{
	unsigned long octets = 0;

	for (int i = 0; i < 300 * patience; i++) {
		FILE *f = fopen(gauge, "r");

		if (!f)
			return true;
		if (fscanf(f, "%lu", &octets) != 1)
			octets = 0;
		fclose(f);
		if (!octets)
			return true;
		usleep(100000);
	}
	return fail("%lu octets are left", octets);
}
