// SPDX-License-Identifier: GPL-2.0
/*
 * NFSv4.1 sessions with a backchannel, and what makes the server call by it.
 */

#include "probe.h"

#define BACK_CHANNEL	2		/* CREATE_SESSION4_FLAG_CONN_BACK_CHAN */

enum { OPEN = 18, BACKCHANNEL_CTL = 40, EXCHANGE_ID = 42, CREATE_SESSION = 43, SEQUENCE = 53,
       RECLAIM_COMPLETE = 58 };
enum { CB_SEQUENCE = 11 };

static uint8_t session[16];
static uint32_t sequence;
static uint64_t client;
static char owner[64];

/* Calls of the server on this connection; of older ones nothing is known. */
static struct {
	uint32_t xid, len;
	uint8_t rpc[1024];
} heard[64];
static unsigned int heard_of;

/* An NFSv4.1 compound that starts with this operation, whose arguments follow. */
static uint32_t begin(struct enc *e, uint32_t op, uint32_t ops)
{
	const uint32_t xid = next_xid++;

	e->n = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_no_chunks(e);
	enc_nfs4_call(e, xid, 1);
	enc_string(e, "");
	enc_u32(e, 1);
	enc_u32(e, ops);
	enc_u32(e, op);
	return xid;
}

/* The same in the session, with more operations to follow. */
static uint32_t begin_in_session(struct enc *e, uint32_t more)
{
	const uint32_t xid = begin(e, SEQUENCE, 1 + more);

	enc_bytes(e, session, 16);
	enc_u32(e, sequence++);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
	return xid;
}

/* Where the result of the first operation is in the Reply, behind its status. */
static const uint8_t *result(const struct reply *r, uint32_t xid, uint32_t op)
{
	const uint8_t *p;
	unsigned int at;

	if (!body_at(r, xid, &at) || !at)
		return NULL;
	p = r->p + at;
	if (get_word(p, 1) != 1 || get_word(p, 5) || get_word(p, 6) || get_word(p, 9) != op || get_word(p, 10)) {
		fail("operation %u: accept_stat %u, NFS4 status %u", op, get_word(p, 5), get_word(p, 6));
		return NULL;
	}
	return p + 44;
}

static void channel(struct enc *e)
{
	enc_u32(e, 0);
	enc_u32(e, 4096);
	enc_u32(e, 4096);
	enc_u32(e, 2048);
	enc_u32(e, 16);
	enc_u32(e, 8);
	enc_u32(e, 0);
}

static bool make_session(struct conn *c)
{
	static unsigned int owners;
	const uint8_t *p;
	uint32_t xid, seqid;
	struct reply r;
	struct enc e;

	heard_of = 0;
	snprintf(owner, sizeof(owner), "probe %d %u", getpid(), owners++);
	xid = begin(&e, EXCHANGE_ID, 1);
	enc_u64(&e, time(NULL));
	enc_string(&e, owner);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	if (!exchange(c, &e, &r))
		return false;
	p = result(&r, xid, EXCHANGE_ID);
	if (!p)
		return false;
	client = (uint64_t)get_word(p, RPC_XID) << 32 | get_word(p, 1);
	seqid = get_word(p, 2);

	xid = begin(&e, CREATE_SESSION, 1);
	enc_u64(&e, client);
	enc_u32(&e, seqid);
	enc_u32(&e, BACK_CHANNEL);
	channel(&e);
	channel(&e);
	enc_u32(&e, CALLBACK);
	enc_u32(&e, 1);
	enc_u32(&e, 0);
	if (!exchange(c, &e, &r))
		return false;
	p = result(&r, xid, CREATE_SESSION);
	if (!p)
		return false;
	memcpy(session, p, 16);
	sequence = 1;
	if (!(get_word(p, 5) & BACK_CHANNEL))
		return fail("no backchannel");
	xid = begin_in_session(&e, 1);
	enc_u32(&e, RECLAIM_COMPLETE);
	enc_u32(&e, 0);
	return exchange(c, &e, &r) && result(&r, xid, SEQUENCE);
}

/* Opens the file to read it; there may be reasons not to get a delegation yet. */
static bool open_file(struct conn *c, const char *file, bool *delegated)
{
	struct reply r;
	struct enc e;
	const uint8_t *p;
	uint32_t xid = begin_in_session(&e, 3);
	unsigned int bitmap;

	enc_u32(&e, PUTROOTFH);
	enc_lookup(&e, dir);
	enc_u32(&e, OPEN);
	enc_u32(&e, 0);
	enc_u32(&e, 0x101);		/* to read, and a delegation for it */
	enc_u32(&e, 0);
	enc_u64(&e, client);
	enc_string(&e, owner);
	/* Made if it is not there, with no attributes in particular. */
	enc_u32(&e, 1);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_string(&e, file);
	if (!exchange(c, &e, &r))
		return false;
	/* Its result, behind those of SEQUENCE, PUTROOTFH and LOOKUP. */
	p = result(&r, xid, SEQUENCE);
	if (!p)
		return false;
	p += 36 + 8 + 8;
	if (get_word(p, RPC_XID) != OPEN || get_word(p, 1))
		return fail("OPEN: operation %u, status %u", get_word(p, RPC_XID), get_word(p, 1));
	bitmap = get_word(p, 2 + 4 + 5 + 1);
	if (bitmap > r.len / 4)
		return fail("OPEN: a bitmap of %u words", bitmap);
	*delegated = get_word(p, 2 + 4 + 5 + 1 + 1 + bitmap) == 1;
	return true;
}

/* Somebody else writes to the file, and is told to try again later. */
bool write_as_another(struct conn *c, const char *file)
{
	const uint32_t xid = next_xid++;
	struct enc e = { .n = 0 };

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, file);
	enc_write(&e, 0, 4);
	enc_u32(&e, 0);
	return send_msg(c, &e);
}

/* Gets a delegation of a file that nobody has used before. */
bool delegation(struct conn *c, char file[FILE_NAME])
{
	static unsigned int files;
	bool delegated = false;
	int i;

	snprintf(file, FILE_NAME, "probe-%d-%u", getpid(), files++);
	for (i = 0; i < 60 && !delegated; i++) {
		if (!open_file(c, file, &delegated))
			return false;
		if (!delegated)
			sleep(1);
	}
	return delegated ? true : fail("no delegation");
}

/* A Call with the XID of one before it is that Call: SUNRPC sends it again, word for word. */
bool is_fresh_or_again(const struct reply *r)
{
	const uint32_t xid = get_word(r->p, HDR_XID);
	const unsigned int len = r->len - 28;
	unsigned int i = heard_of < COUNT(heard) ? heard_of : COUNT(heard);

	if (r->len < 28 || len > sizeof(heard[0].rpc))
		return fail("a Call of %u octets", r->len);
	while (i--) {
		if (heard[i].xid != xid)
			continue;
		if (heard[i].len == len && !memcmp(heard[i].rpc, r->p + 28, len))
			return true;
		return fail("xid %x is that of another Call", xid);
	}
	i = heard_of++ % COUNT(heard);
	heard[i].xid = xid;
	heard[i].len = len;
	memcpy(heard[i].rpc, r->p + 28, len);
	return true;
}

/* Gets a delegation, and has the server recall it: the Call that it makes. */
bool called(struct conn *c, struct reply *back)
{
	static uint8_t copy[RECV_SIZE];
	char file[FILE_NAME];
	struct reply r;
	int i;

	if (!make_session(c) || !delegation(c, file))
		return false;
	/* What it has no reason for it does not do. */
	if (!get_reply(c, &r, 500))
		return false;
	if (r.any)
		return fail("called too early");
	if (!write_as_another(c, file))
		return false;
	for (i = 0; i < 2; i++) {
		if (!get_reply(c, &r, 5000) || !r.any)
			return fail("not called");
		if (get_word(r.p + 28, RPC_TYPE))
			continue;
		if (!is_fresh_or_again(&r))
			return false;
		*back = r;
		memcpy(copy, r.p, r.len);
		back->p = copy;
	}
	return back->p ? true : fail("not called");
}

/* The next Reply of the server, past Calls. */
bool next_answer(struct conn *c, struct reply *r)
{
	int turn;

	for (turn = 0; turn <= REVERSE_CALLS; turn++) {
		if (!get_reply(c, r, 5000))
			return false;
		if (!r->any)
			return fail("no answer");
		if (get_word(r->p, HDR_PROC) != RDMA_MSG || get_word(r->p + 28, RPC_TYPE))
			return true;
		if (!is_fresh_or_again(r))
			return false;
	}
	return fail("Calls without end");
}

/*
 * The state of the backchannel, as the server tells it, and the credits that it grants. It
 * may call meanwhile.
 */
bool status(struct conn *c, uint32_t *flags, uint32_t *credits)
{
	const uint8_t *p;
	struct enc e;
	struct reply r;
	const uint32_t xid = begin_in_session(&e, 0);

	if (!send_msg(c, &e) || !next_answer(c, &r))
		return false;
	p = result(&r, xid, SEQUENCE);
	if (p)
		*flags = get_word(p, 8);
	if (credits)
		*credits = get_word(r.p, HDR_CREDITS);
	return p;
}

/* Has the server give up what it has called, and call anew. */
bool post_give_up(struct conn *c)
{
	struct enc e;

	begin_in_session(&e, 1);
	enc_u32(&e, BACKCHANNEL_CTL);
	enc_u32(&e, CALLBACK);
	enc_u32(&e, 1);
	enc_u32(&e, 0);
	return post_msg(c, &e);
}

/* The form of a reverse Call. */
bool is_call(const struct reply *r)
{
	const uint8_t *rpc = r->p + 28;

	if (get_word(r->p, HDR_VERS) != 1 || get_word(r->p, HDR_PROC) != RDMA_MSG || get_word(r->p, 4) || get_word(r->p, 5) || get_word(r->p, 6))
		return fail("vers %u, proc %u", get_word(r->p, HDR_VERS), get_word(r->p, HDR_PROC));
	if (!get_word(r->p, HDR_CREDITS))
		return fail("no credits requested");
	if (get_word(rpc, RPC_XID) != get_word(r->p, HDR_XID) || get_word(rpc, RPC_TYPE) || get_word(rpc, RPC_PROGRAM) != CALLBACK)
		return fail("xid %x and %x, msg_type %u, program %x", get_word(r->p, HDR_XID), get_word(rpc, RPC_XID),
			    get_word(rpc, RPC_TYPE), get_word(rpc, RPC_PROGRAM));
	return true;
}

/* Goes past an opaque item, if it is no longer than the message. */
static unsigned int behind(const struct reply *r, unsigned int at)
{
	const uint32_t n = get_word(r->p + at, RPC_XID);

	return at + 4 + (n < r->len ? (n + 3) & ~3 : 0);
}

/* The Reply to a recall: it has been understood, and so many more may come at a time. */
void understood(struct enc *e, const struct reply *back, uint32_t credits)
{
	const uint32_t xid = get_word(back->p, HDR_XID);
	unsigned int at = 28 + 24;

	/* Credential, verifier, tag; minor version, ident, number of operations. */
	at = behind(back, at + 4);
	at = behind(back, at + 4);
	at = behind(back, at);
	at += 12;
	e->n = 0;
	enc_hdr(e, xid, 1, credits, RDMA_MSG);
	enc_no_chunks(e);
	enc_u32(e, xid);
	enc_u32(e, 1);
	enc_u32(e, 0);
	enc_u64(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 0);
	enc_u32(e, 2);
	enc_u32(e, CB_SEQUENCE);
	enc_u32(e, 0);
	/* Session, sequence, slot, highest slot. */
	enc_bytes(e, back->p + at + 4, 28);
	enc_u32(e, get_word(back->p + at, 7));
	enc_u32(e, 4);
	enc_u32(e, 0);
}
